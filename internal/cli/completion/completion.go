// Package completion completes command lines: the scripts for shells, and the
// answers to what they ask. It reads commands, flags and values from the parser,
// so that a new flag needs nothing here.
package completion

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/terminal"
)

// Word is the command by which the scripts ask what could be typed. It
// is not for people, so it is not among the commands.
const Word = "__complete"

// The scripts ask the program itself, so they never have to be made anew.
var (
	//go:embed completion.bash
	bashScript string
	//go:embed completion.zsh
	zshScript string
	//go:embed completion.fish
	fishScript string
)

// Script is the completion script for a shell: bash, zsh or fish.
func Script(shell string) string {
	return map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
}

// candidate is something that could be typed.
type candidate struct{ word, about string }

// files stands for the names of files, which shells complete themselves.
var files = []candidate{{word: ":files"}}

// Complete prints what could stand in place of the last word, each on a line,
// with a tab before what it means. Conversations are those of the server that the
// words name, or that runs on dataDir.
func Complete(ctx context.Context, root *kong.Node, dataDir string, words []string, stdout io.Writer) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	found := candidates(ctx, root, dataDir, words[:len(words)-1], last)
	for _, c := range found {
		if strings.HasPrefix(c.word, last) || c.word == files[0].word {
			fmt.Fprintf(stdout, "%s\t%s\n", terminal.Inline(c.word), terminal.Inline(c.about))
		}
	}
}

// candidates are what could follow the words.
func candidates(ctx context.Context, at *kong.Node, dataDir string, words []string, last string) []candidate {
	given, args := map[string]string{}, 0
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		flag := flagNamed(at, name)
		switch {
		case flag != nil && flag.IsBool():
		case flag != nil && joined:
			given[flag.Name] = value
		case flag != nil && i == len(words)-1: // its value is being typed
			return valuesOf(flag.Value)
		case flag != nil:
			i++
			given[flag.Name] = words[i]
		case strings.HasPrefix(words[i], "-"):
		default:
			if next := childNamed(at, words[i]); next != nil {
				at = next
			} else {
				args++
			}
		}
	}
	switch {
	case strings.HasPrefix(last, "-"):
		name, _, joined := strings.Cut(last, "=")
		if flag := flagNamed(at, name); joined && flag != nil {
			return joinedTo(name, valuesOf(flag.Value))
		}
		return flagsOf(at)
	case len(at.Children) > 0:
		return commandsOf(at)
	case args < len(at.Positional) && at.Positional[args].Name == "id" && slices.Contains([]string{"attach", "logs", "open"}, at.Name):
		return conversationIDs(ctx, dataDir, given)
	case args < len(at.Positional):
		return valuesOf(at.Positional[args])
	}
	return nil
}

func childNamed(at *kong.Node, name string) *kong.Node {
	for _, c := range at.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func flagNamed(at *kong.Node, name string) *kong.Flag {
	for _, group := range at.AllFlags(true) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func commandsOf(at *kong.Node) (out []candidate) {
	for _, c := range at.Children {
		if !c.Hidden {
			out = append(out, candidate{c.Name, c.Help})
		}
	}
	return out
}

func flagsOf(at *kong.Node) (out []candidate) {
	for _, group := range at.AllFlags(true) {
		for _, f := range group {
			out = append(out, candidate{"--" + f.Name, f.Help})
		}
	}
	return out
}

// valuesOf are the values that a flag or an argument can have, as far as they are known.
func valuesOf(v *kong.Value) (out []candidate) {
	for word := range v.EnumMap() {
		if word != "" {
			out = append(out, candidate{word: word})
		}
	}
	if v.Name == "model" && !v.IsBool() {
		for _, name := range catalogue.New(nil).Names() {
			out = append(out, candidate{word: name})
		}
	}
	slices.SortFunc(out, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	if len(out) == 0 && (v.Tag.PlaceHolder == "FILE" || v.Tag.PlaceHolder == "DIR") {
		return files
	}
	return out
}

func joinedTo(name string, values []candidate) (out []candidate) {
	for _, v := range values {
		if v.word != files[0].word {
			v.word = name + "=" + v.word
		}
		out = append(out, v)
	}
	return out
}

// completionTime is how long a person may wait who has pressed the tab key.
const completionTime = 2 * time.Second

// conversationIDs are those of the server that the words so far name.
func conversationIDs(ctx context.Context, dataDir string, given map[string]string) (out []candidate) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	var f struct{ cli.RemoteFlags }
	parser, err := kong.New(&f, kong.Vars{"data_dir": dataDir}, kong.Exit(func(int) {}))
	if err != nil {
		return nil
	}
	var args []string
	for _, name := range []string{"data-dir", "server", "key-file"} {
		if value, ok := given[name]; ok {
			args = append(args, "--"+name+"="+value)
		}
	}
	if _, err := parser.Parse(args); err != nil {
		return nil
	}
	r, err := f.Connect()
	if err != nil {
		return nil
	}
	page, err := r.Conversations(ctx, url.Values{"limit": {"50"}})
	if err != nil {
		return nil
	}
	for _, c := range page.Results {
		word, _ := cli.StateOf(c)
		out = append(out, candidate{c.ConversationID, word + " · " + terminal.Inline(c.Title)})
	}
	return out
}
