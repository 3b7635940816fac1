package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"deckhand/internal/llm"
)

// defaultDataDir follows the desktop convention.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "deckhand")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "deckhand-data"
	}
	return filepath.Join(home, ".local", "share", "deckhand")
}

// configFile is what a config file may say beside flags.
type configFile struct {
	flags  map[string]any
	prices map[string]llm.Price
}

// readConfig reads a file; "" is an empty one.
func readConfig(path string) (configFile, error) {
	c := configFile{flags: map[string]any{}}
	if path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("the config file cannot be read: %w", err)
	}
	if err := yaml.Unmarshal(b, &c.flags); err != nil {
		return c, fmt.Errorf("the config file %s is not valid YAML: %s", path, yaml.FormatError(err, false, true))
	}
	if raw, ok := c.flags["prices"]; ok {
		delete(c.flags, "prices")
		if err := bothPrices(raw); err != nil {
			return c, fmt.Errorf("prices in %s: %w", path, err)
		}
		b, _ := yaml.Marshal(raw)
		if err := yaml.UnmarshalWithOptions(b, &c.prices, yaml.Strict()); err != nil {
			return c, fmt.Errorf("prices in %s: each model has input and output, in dollars per million tokens: %s", path, yaml.FormatError(err, false, false))
		}
		prices := map[string]llm.Price{}
		for model, p := range c.prices {
			prices[strings.ToLower(model)] = p
			if !isPrice(p.Input) || !isPrice(p.Output) {
				return c, fmt.Errorf("prices in %s: input and output of %s are amounts of dollars, 0 or more", path, model)
			}
		}
		c.prices = prices
	}
	return c, nil
}

// bothPrices refuses a price that leaves half of it out: it would be taken for free.
func bothPrices(raw any) error {
	models, _ := raw.(map[string]any)
	for model, v := range models {
		p, _ := v.(map[string]any)
		if p["input"] == nil || p["output"] == nil {
			return fmt.Errorf("%s needs both input and output; 0 is a price", model)
		}
	}
	return nil
}

func isPrice(p float64) bool { return p >= 0 && !math.IsInf(p, 0) }

// fileResolver takes flags from the config file, after the command line and the environment.
type fileResolver struct {
	args   []string
	file   configFile
	loaded bool
}

// Validate implements kong.Resolver: a key that no command has is a mistake.
func (r *fileResolver) Validate(app *kong.Application) error {
	if err := r.load(); err != nil {
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
		return fmt.Errorf("the config file has keys that no flag knows: %s", strings.Join(wrong, ", "))
	}
	return nil
}

// Resolve implements kong.Resolver.
func (r *fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if err := r.load(); err != nil {
		return nil, err
	}
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
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
			return strings.Join(parts, ","), nil
		}
		return fmt.Sprint(v), nil
	}
	return nil, nil
}

func (r *fileResolver) load() error {
	if r.loaded {
		return nil
	}
	r.loaded = true
	var err error
	r.file, err = readConfig(configPath(r.args))
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

// databasePath turns the URL into a file.
func (c common) databasePath() (string, error) {
	url := c.DatabaseURL
	switch {
	case url == "":
		return filepath.Join(c.DataDir, "deckhand.db"), nil
	case strings.HasPrefix(url, "sqlite:"):
		path := strings.TrimPrefix(strings.TrimPrefix(url, "sqlite:"), "//")
		if path == "" {
			return "", errors.New("--database-url sqlite: needs a path behind the colon")
		}
		return path, nil
	}
	scheme, _, _ := strings.Cut(url, ":")
	return "", fmt.Errorf("--database-url: this version keeps its data in SQLite only, so use sqlite:PATH; %s: is not supported", scheme)
}
