// Package reference writes the documentation of the command line: manual pages, the page of all
// flags, and a commented config file. It reads the parser's model, so a new flag needs no change here.
package reference

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli"
	"deckhand/internal/config"
)

// Command writes the documentation. It is hidden, because only the build uses it.
type Command struct {
	Format string `arg:"" enum:"man,markdown,config" help:"man, markdown or config."`
	Dir    string `name:"dir" placeholder:"DIR" help:"Existing folder to write the manual pages to."`
}

// Run writes manual pages to the folder, and everything else to standard output.
func (c *Command) Run(k *kong.Context, o *cli.Output) error {
	app := k.Model.Node
	switch c.Format {
	case "man":
		if c.Dir == "" {
			return cli.Usagef("man needs --dir: the folder to write the manual pages to")
		}
		for name, text := range Man(app) {
			if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil {
				return fmt.Errorf("writing a manual page: %w", err)
			}
		}
		return nil
	case "config":
		_, err := o.Stdout.Write([]byte(Config(app)))
		return err
	}
	_, err := o.Stdout.Write([]byte(Markdown(app)))
	return err
}

// command is a command of the command line, with its flags.
type command struct {
	name  string // "deckhand key create"
	usage string // its arguments
	help  string
	long  string // the rest of the help, as paragraphs
	flags []flag
}

type flag struct {
	name, short, value, help, initial, env string
	isBool                                 bool
}

// commandsOf lists the commands of a program in the order of the help.
func commandsOf(app *kong.Node) (out []command) {
	for _, n := range app.Leaves(true) {
		c := command{name: n.FullPath(), usage: text(strings.TrimPrefix(n.Summary(), n.Path())), help: sentence(text(n.Help)), long: text(n.Detail)}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				if f.Name != "help" {
					c.flags = append(c.flags, flagOf(f))
				}
			}
		}
		out = append(out, c)
	}
	return out
}

func flagOf(f *kong.Flag) flag {
	out := flag{name: f.Name, help: sentence(text(f.Help)), env: strings.Join(f.Envs, ", "), isBool: f.IsBool()}
	if f.Short != 0 {
		out.short = string(f.Short)
	}
	if !out.isBool {
		out.value = cmp.Or(f.PlaceHolder, strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '-')+1:]))
		out.initial = text(f.Default)
	}
	return out
}

// typed returns the flag as the user types it, such as -q, --query=TEXT.
func (f flag) typed() string {
	s := "--" + f.name
	if f.value != "" {
		s += "=" + f.value
	}
	if f.short != "" {
		s = "-" + f.short + ", " + s
	}
	return s
}

// text makes a help text independent of this machine: it shortens the default data directory to ~/.local/share/deckhand.
func text(s string) string {
	return strings.ReplaceAll(s, config.DefaultDataDir(), "~/.local/share/deckhand")
}

// sentence adds a full stop to a help text that has none.
func sentence(s string) string {
	if last, _ := utf8.DecodeLastRuneInString(s); s == "" || strings.ContainsRune(".!?:", last) {
		return s
	}
	return s + "."
}
