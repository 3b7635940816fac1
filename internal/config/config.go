// Package config reads the config file: values of flags by their names, and what
// it says of models and their prices.
package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
}

// Read reads a file; "" is an empty one.
func Read(path string) (File, error) {
	c := File{flags: map[string]any{}, Models: map[string]catalogue.Override{}}
	if path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("cannot read the config file: %w", err)
	}
	if err := yaml.Unmarshal(b, &c.flags); err != nil {
		return c, fmt.Errorf("the config file %s is not valid YAML: %s", path, yaml.FormatError(err, false, true))
	}
	for _, section := range []string{"models", "prices"} {
		raw, ok := c.flags[section]
		if !ok {
			continue
		}
		delete(c.flags, section)
		if err := c.addModels(section, raw); err != nil {
			return c, fmt.Errorf("%s in %s: %w", section, path, err)
		}
	}
	return c, nil
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
		return o, fmt.Errorf("%s: %s", sectionFields[section], yaml.FormatError(err, false, false))
	}
	return o, o.Check()
}

// Resolver takes flags from the config file, after the command line and the environment.
type Resolver struct {
	Args   []string
	file   File
	loaded bool
}

// Validate implements kong.Resolver: a key that no command has is a mistake.
func (r *Resolver) Validate(app *kong.Application) error {
	if err := r.Load(); err != nil {
		return err
	}
	known := map[string]bool{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			known[f.Name] = true
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
	var wrong []string
	for key := range r.file.flags {
		if !known[strings.ReplaceAll(key, "_", "-")] {
			wrong = append(wrong, key)
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return fmt.Errorf("unknown keys in the config file: %s", strings.Join(wrong, ", "))
	}
	return nil
}

// Resolve implements kong.Resolver.
func (r *Resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if err := r.Load(); err != nil {
		return nil, err
	}
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
	var err error
	r.file, err = Read(configPath(r.Args))
	return err
}

// configPath finds --config before the flags are parsed, since it decides what they are.
func configPath(args []string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			return v
		}
		if a == "--config" && i+1 < len(args) {
			return args[i+1]
		}
		if a == "--" {
			break
		}
	}
	return os.Getenv("DECKHAND_CONFIG")
}

// Models returns the models in the config file.
func (r *Resolver) Models() map[string]catalogue.Override { return r.file.Models }
