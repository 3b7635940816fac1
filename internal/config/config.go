// Package config reads the config file: values of flags by their names, and what
// it says of models and their prices.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"deckhand/internal/llm/catalogue"
)

// DefaultDataDir follows the desktop convention.
func DefaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "deckhand")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "deckhand-data"
	}
	return filepath.Join(home, ".local", "share", "deckhand")
}

// File is what a config file may say beside flags.
type File struct {
	flags map[string]any
	// Models are what it says of models, its prices among it; by name in lower case.
	Models map[string]catalogue.Override
	// sections are the contents of its sections, to compare them.
	sections map[string]string
}

// Sections are the sections of the config file, in the order in which they are read.
var Sections = []string{"models", "prices"}

// Read reads a file; "" is an empty one.
func Read(path string) (File, error) {
	c := File{flags: map[string]any{}, Models: map[string]catalogue.Override{}, sections: map[string]string{}}
	if path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("cannot read the config file: %w", err)
	}
	if err := c.parse(b); err != nil {
		return c, fmt.Errorf("the config file %s %w", path, err)
	}
	for _, section := range Sections {
		raw, ok := c.flags[section]
		if !ok {
			continue
		}
		delete(c.flags, section)
		c.sections[section] = fmt.Sprint(raw)
		if err := c.addModels(section, raw); err != nil {
			return c, fmt.Errorf("%s in %s: %w", section, path, err)
		}
	}
	return c, nil
}

// parse parses the settings. Its errors do not quote the file, which may contain passwords.
func (c *File) parse(text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&c.flags); err != nil && !errors.Is(err, io.EOF) {
		return yamlError(err)
	}
	var more any
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("has more than one YAML document; use only one")
	}
	for _, key := range slices.Sorted(maps.Keys(c.flags)) {
		if slices.Contains(Sections, key) {
			continue
		}
		if dashed := strings.ReplaceAll(key, "_", "-"); dashed != key && c.flags[dashed] != nil {
			return fmt.Errorf("is not valid: %s and %s are the same setting; keep one", dashed, key)
		}
		switch v := c.flags[key].(type) {
		case nil:
			return fmt.Errorf("is not valid: %s has no value; set one, or remove the line", key)
		case map[string]any:
			return fmt.Errorf("is not valid: %s must be a value or a list", key)
		case []any:
			for _, x := range v {
				switch x.(type) {
				case nil, []any, map[string]any:
					return fmt.Errorf("is not valid: %s must be a list of values", key)
				}
			}
		}
	}
	return nil
}

var duplicateKey = regexp.MustCompile(`^mapping key "(.*)" already defined at \[(\d+):`)

// yamlError returns an error with the position of a YAML error, without the text of the file.
func yamlError(err error) error {
	var form *yaml.UnexpectedNodeTypeError
	var kind *yaml.TypeError
	if errors.As(err, &form) || errors.As(err, &kind) { // only of the whole file: values may have any type
		return errors.New("is not valid: it must contain settings as name: value, each on its own line")
	}
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil || e.GetToken().Position == nil {
		return errors.New("is not a map of settings in YAML")
	}
	at := e.GetToken().Position
	if m := duplicateKey.FindStringSubmatch(e.GetMessage()); m != nil {
		return fmt.Errorf("is not valid: line %d sets %s again, after line %s; keep one of them", at.Line, m[1], m[2])
	}
	return fmt.Errorf("is not valid YAML: line %d, column %d; check the indentation, quotes and brackets near it", at.Line, at.Column)
}

// sectionFields say what a model may have in a section.
var sectionFields = map[string]string{
	"models": "each model may have window, max_output, tools, images, thinks, api, base_url, input, output, cache_read and cache_write",
	"prices": "each model has input and output in dollars per million tokens, and optionally cache_read and cache_write",
}

// addModels takes in a section that describes models. prices is the short form of
// models, for a file that says nothing else of them.
func (c *File) addModels(section string, raw any) error {
	models, ok := raw.(map[string]any)
	if !ok && raw != nil {
		return fmt.Errorf("must be a map from model names to values; %s", sectionFields[section])
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		o, err := readModel(section, models[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !strings.Contains(name, "/") {
			return fmt.Errorf("%s: the model name must be provider/model, as in the settings", name)
		}
		key := strings.ToLower(name)
		if have, ok := c.Models[key]; ok { // of the other section, which is read first
			if have.Input != nil || section == "models" {
				return fmt.Errorf("%s: the model or its price is defined twice", name)
			}
			have.Input, have.Output, have.CacheRead, have.CacheWrite = o.Input, o.Output, o.CacheRead, o.CacheWrite
			o = have
		}
		c.Models[key] = o
	}
	return nil
}

// Names of fields in the parser's errors.
var (
	modelField = regexp.MustCompile(`unknown field "([^"]*)"|struct field Override\.(\w+)`)
	inside     = regexp.MustCompile(`([a-z])([A-Z])`)
)

// readModel reads what a section says of one model.
func readModel(section string, raw any) (catalogue.Override, error) {
	var o catalogue.Override
	fields, ok := raw.(map[string]any)
	if section == "prices" && (fields["input"] == nil || fields["output"] == nil) {
		return o, fmt.Errorf("input and output are both required (0 is allowed); %s", sectionFields[section])
	}
	if !ok {
		return o, errors.New(sectionFields[section])
	}
	if section == "prices" {
		for field := range fields {
			if !slices.Contains([]string{"input", "output", "cache_read", "cache_write"}, field) {
				return o, fmt.Errorf("unknown field %s; %s", field, sectionFields[section])
			}
		}
	}
	b, err := yaml.Marshal(fields)
	if err == nil {
		err = yaml.UnmarshalWithOptions(b, &o, yaml.Strict())
	}
	if err != nil {
		wrong := "a field has the wrong type"
		if m := modelField.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			wrong = "unknown field " + m[1]
		} else if m != nil {
			wrong = strings.ToLower(inside.ReplaceAllString(m[2], "${1}_$2")) + " has the wrong type"
		}
		return o, fmt.Errorf("%s; %s", wrong, sectionFields[section])
	}
	return o, o.Check()
}

// Resolver takes flags from the config file, after the command line and the environment.
type Resolver struct {
	Args []string
	// Service is the service of the package; the zero value means Packaged.
	Service Service
	// Unused are the DECKHAND_* variables that no flag of any command has, such as misspelled ones.
	Unused []string
	// Path is the path of the config file, set by Load; "" if there is none.
	Path string

	file  File
	flags map[string]*kong.Flag // of all commands
	// variables are those that have an effect.
	variables []string
	loaded    bool
	service   bool // the command is for the service
}

// Validate implements kong.Resolver: a key that no command has is a mistake.
func (r *Resolver) Validate(app *kong.Application) error {
	if err := r.Load(); err != nil {
		return err
	}
	r.index(app)
	r.Unused = unused(r.variables)
	var wrong []string
	for key := range r.file.flags {
		if name := strings.ReplaceAll(key, "_", "-"); r.flags[name] == nil || name == "help" || name == "config" {
			wrong = append(wrong, key)
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return fmt.Errorf("the config file %s has unknown keys: %s", r.Path, strings.Join(wrong, ", "))
	}
	return nil
}

// index collects the flags of all commands by name, and their variables.
func (r *Resolver) index(app *kong.Application) {
	if r.flags != nil {
		return
	}
	r.flags, r.variables = map[string]*kong.Flag{}, slices.Clone(otherVariables)
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			r.variables = append(r.variables, f.Envs...)
			if known := r.flags[f.Name]; known == nil || len(known.Envs) == 0 {
				r.flags[f.Name] = f
			}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
}

// Resolve implements kong.Resolver.
func (r *Resolver) Resolve(k *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if err := r.Load(); err != nil {
		return nil, err
	}
	r.index(k.Model)
	value, source := r.lookUp(flag)
	if value == "" && (source == "" || strings.HasPrefix(source, fromEnvironment)) {
		return nil, nil
	}
	return value, nil
}

// Load reads the file, once.
func (r *Resolver) Load() error {
	if r.loaded {
		return nil
	}
	r.loaded = true
	if r.Service == (Service{}) {
		r.Service = Packaged
	}
	r.Path = configPath(r.Args)
	if r.service = r.Service.of(r.Args, r.Path); r.service {
		if err := r.Service.adopt(); err != nil {
			return err
		}
		if verb := command(r.Args); verb != "backup" && verb != restore { // these call SwitchUser, which creates their folder first
			if err := r.Service.switchUser(); err != nil {
				return err
			}
		}
		r.Path = cmp.Or(configPath(r.Args), r.Service.Config)
	}
	var err error
	r.file, err = Read(r.Path)
	return err
}

// configPath finds --config before the flags are parsed, since it decides what they are.
func configPath(args []string) string {
	path, _ := expandHome(typed(args, "--config", "DECKHAND_CONFIG")) // without a home folder, reading the file fails
	return path
}

// typed returns the value of a flag on the command line or in the environment.
func typed(args []string, flag, env string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			return v
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
		if a == "--" {
			break
		}
	}
	return os.Getenv(env)
}

// Warnings lists what is probably a mistake but does not prevent a start.
func (r *Resolver) Warnings() (out []string) {
	for _, name := range r.Unused {
		out = append(out, "unknown environment variable "+name+"; check its spelling")
	}
	return out
}

// Models returns the models in the config file.
func (r *Resolver) Models() map[string]catalogue.Override { return r.file.Models }

// Sections returns the contents of the sections in the config file, by name.
func (r *Resolver) Sections() map[string]string { return r.file.sections }
