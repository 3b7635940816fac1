package config

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// Setting is the effective value of a flag and where it comes from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// Default describes the default if it is not a fixed value, such as "half of the disk"; "" if the setting has a value.
	Default string `json:"default,omitempty"`

	raw string // the value with its password; of a file, its path and a hash of its content
}

// Sources of settings. For environment variables and credentials, the name follows.
const (
	fromDefault     = "default"
	fromCommandLine = "command line"
	fromEnvironment = "environment"
	fromCredential  = "credential"
	fromFile        = "config file"
	fromPackage     = "package"
)

// Effective lists the settings of the server command that was parsed, without passwords: its flags, the sections of the config file and
// the master key. A flag without a variable is not a setting, but changes the
// output of the command. fallbacks are the values of flags that are not set, from other sources.
func Effective(k *kong.Context, r *Resolver, fallbacks ...Setting) []Setting {
	typed := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		if p.Flag != nil && !p.Resolved {
			typed[p.Flag] = true
		}
	}
	var out []Setting
	for _, group := range k.Selected().AllFlags(true) {
		for _, f := range group {
			if f.Name == "config" || len(f.Envs) == 0 {
				continue
			}
			source := fromDefault
			if typed[f] {
				source = fromCommandLine
			} else if _, from := r.lookUp(f); from != "" {
				source = from
			}
			s := Setting{Name: f.Name, Value: shown(k.FlagValue(f)), Source: source, raw: raw(f, k.FlagValue(f))}
			if source == fromDefault {
				s.Default = describedDefault(f, k.FlagValue(f))
			}
			out = append(out, s)
		}
	}
	for i, s := range out {
		for _, other := range fallbacks {
			if s.Name == other.Name && s.Source == fromDefault {
				out[i] = Setting{Name: s.Name, Value: redacted(other.Value), Source: other.Source, raw: s.raw}
			}
		}
	}
	return append(out, r.otherSettings(out)...)
}

var defaultText = regexp.MustCompile(`Default(?: \(0\))?: ([^.]+(?:\.\w[^.]*)*)`)

// describedDefault returns what the help of a flag says about its default if the value is empty or 0.
func describedDefault(f *kong.Flag, value any) string {
	v := reflect.ValueOf(value)
	if f.IsBool() || !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0) {
		return ""
	}
	if m := defaultText.FindStringSubmatch(f.Help); m != nil {
		return m[1]
	}
	return "none"
}

// otherSettings lists the settings that have no flag. Changed does not compare them: a reload applies the sections, and the master key is
// changed by a command.
func (r *Resolver) otherSettings(flags []Setting) (out []Setting) {
	for _, section := range Sections {
		if _, ok := r.file.sections[section]; ok {
			out = append(out, Setting{Name: section, Value: "(set)", Source: fromFile})
		}
	}
	key := Setting{Name: "master-key", Value: masked}
	switch {
	case os.Getenv("DECKHAND_MASTER_KEY") != "":
		key.Source = fromEnvironment + " DECKHAND_MASTER_KEY"
	case MasterKey() != "":
		key.Source = fromCredential + " master-key"
	default:
		key.Source = fromDefault
		for _, s := range flags {
			if s.Name == "data-dir" {
				key.Value = filepath.Join(s.Value, "master.key")
			}
		}
	}
	return append(out, key)
}

// seed makes hashes useless outside this process.
var seed = maphash.MakeSeed()

// raw is what Changed compares.
func raw(f *kong.Flag, value any) string {
	s := fmt.Sprint(value)
	if f.PlaceHolder != "FILE" || s == "" {
		return s
	}
	// Reading a pipe would take its content from its reader.
	if info, err := os.Stat(s); err == nil && info.Mode().IsRegular() {
		if content, err := os.ReadFile(s); err == nil {
			return fmt.Sprint(s, " ", maphash.Bytes(seed, content))
		}
	}
	return s
}

// Changed lists the flags whose values differ, or the contents of the files that they name.
func Changed(before, after []Setting) (names []string) {
	old := map[string]string{}
	for _, s := range before {
		old[s.Name] = s.raw
	}
	for _, s := range after {
		if old[s.Name] != s.raw {
			names = append(names, s.Name)
		}
	}
	return names
}

// WriteSettings prints settings as a table or as JSON. In JSON, a value that is not set is empty or 0; the table describes the default.
func WriteSettings(w io.Writer, settings []Setting, asJSON, all bool) error {
	if !all {
		kept := []Setting{}
		for _, s := range settings {
			if s.Source != fromDefault {
				kept = append(kept, s)
			}
		}
		settings = kept
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(settings)
	}
	if len(settings) == 0 {
		_, err := fmt.Fprintln(w, "All settings have default values. Use --all to show them.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tSOURCE")
	for _, s := range settings {
		value := s.Value
		if s.Default != "" {
			value = s.Default
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, value, s.Source)
	}
	return table.Flush()
}

// shown formats a value. The password of a URL is masked.
func shown(v any) string {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		parts := make([]string, list.Len())
		for i := range parts {
			parts[i] = shown(list.Index(i).Interface())
		}
		return strings.Join(parts, ",")
	}
	return redacted(fmt.Sprint(v))
}

// lookUp finds the value of a flag that is not on the command line: in the environment, in the
// systemd credentials, or in the config file. The parser reads environment variables itself, so
// their value is empty here.
func (r *Resolver) lookUp(flag *kong.Flag) (value, source string) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return "", fromEnvironment + " " + env
		}
	}
	direct, isFile := strings.CutSuffix(flag.Name, "-file")
	if path := credential(flag); path != "" && !(isFile && r.typed(direct)) {
		return path, fromCredential + " " + filepath.Base(path)
	}
	// --smtp-url and --smtp-url-file are one setting, so that a source of one takes precedence over the config file for the other.
	if other := r.flags[flag.Name+"-file"]; other != nil && (r.typed(other.Name) || credential(other) != "") || isFile && r.typed(direct) {
		return "", ""
	}
	for _, key := range []string{flag.Name, strings.ReplaceAll(flag.Name, "-", "_")} {
		v, ok := r.file.flags[key]
		if !ok {
			continue
		}
		if list, ok := v.([]any); ok {
			parts := make([]string, len(list))
			for i, x := range list {
				parts[i] = fmt.Sprint(x)
			}
			return strings.Join(parts, ","), fromFile
		}
		return fmt.Sprint(v), fromFile
	}
	if r.service && flag.Name == "data-dir" {
		return r.Service.Data, fromPackage
	}
	return "", ""
}

// typed reports whether a flag has a value on the command line or in the environment.
func (r *Resolver) typed(name string) bool {
	f := r.flags[name]
	return f != nil && len(f.Envs) > 0 && typed(r.Args, "--"+name, f.Envs[0]) != ""
}

// credential returns the file of a credential for a flag that takes a file: --smtp-url-file takes
// the credential smtp-url, --tls-key the credential tls-key. It returns "" if there is none.
func credential(flag *kong.Flag) string {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" || flag.PlaceHolder != "FILE" || flag.Name == "config" {
		return ""
	}
	path := filepath.Join(dir, strings.TrimSuffix(flag.Name, "-file"))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}
