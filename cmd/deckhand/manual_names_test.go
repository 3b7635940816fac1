package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox/drivers"
)

// named are the commands, flags and variables of the program.
type named struct{ commands, flags, variables map[string]bool }

func namesOfTheProgram(t *testing.T) named {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("deckhand"), kong.Vars{"data_dir": "DIR"}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()))
	if err != nil {
		t.Fatal(err)
	}
	n := named{map[string]bool{}, map[string]bool{"help": true}, map[string]bool{}}
	var walk func(node *kong.Node, path string)
	walk = func(node *kong.Node, path string) {
		n.commands[path] = true
		for _, f := range node.Flags {
			n.flags[f.Name] = true
			for _, e := range f.Envs {
				n.variables[e] = true
			}
		}
		for _, c := range node.Children {
			walk(c, strings.TrimSpace(path+" "+c.Name))
		}
	}
	walk(parser.Model.Node, "")
	return n
}

var (
	// ownFlag is a flag that is written by itself, as the documentation does for those of this program.
	ownFlag     = regexp.MustCompile("`--([a-z][a-z-]+)")
	ownCommand  = regexp.MustCompile("(?m)(?:^ *(?:sudo |[A-Z_]+=\\S+ )*|`|\\$ |\\| |\\()deckhand ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^`\n]*)")
	flagInLine  = regexp.MustCompile(` --([a-z][a-z-]+)`)
	ownVariable = regexp.MustCompile(`\bDECKHAND_[A-Z_]+`)

	// notOurs are flags of other programs that stand by themselves in a page.
	notOurs = map[string]bool{"api-key": true, "network": true, "privileged": true, "security-opt": true, "pictures": true, "only": true, "rm": true, "from": true, "prefix": true, "sums": true, "uninstall": true}
	// notFlags are variables without a flag: secrets, and those of programs that build and test.
	notFlags = map[string]bool{"DECKHAND_MASTER_KEY": true, "DECKHAND_NEW_MASTER_KEY": true, "DECKHAND_KEY": true, "DECKHAND_LEGACY_UI": true, "DECKHAND_URL": true}
)

// What the documentation tells people to type exists.
func TestNamesInTheDocumentation(t *testing.T) {
	t.Parallel()
	known, found := namesOfTheProgram(t), 0
	for _, page := range documents(t) {
		if strings.HasPrefix(page, "docs/decisions/") {
			continue // they are about what was, too
		}
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		flag := func(name string) {
			if found++; !known.flags[name] && !notOurs[name] {
				t.Errorf("%s: there is no flag --%s", page, name)
			}
		}
		for _, m := range ownFlag.FindAllStringSubmatch(string(text), -1) {
			flag(m[1])
		}
		for _, m := range ownCommand.FindAllStringSubmatch(string(text), -1) {
			if found++; !known.commands[m[1]] || (m[1] == "key" || m[1] == "user" || m[1] == "config") && m[2] != "" && !known.commands[m[1]+" "+m[2]] {
				t.Errorf("%s: there is no command deckhand %s %s", page, m[1], m[2])
			}
			line, _, _ := strings.Cut(m[3], " | ")
			for _, f := range flagInLine.FindAllStringSubmatch(line, -1) {
				flag(f[1])
			}
		}
		if page == "docs/testing.md" || page == "CONTRIBUTING.md" {
			continue // they name the variables of tests
		}
		for _, name := range ownVariable.FindAllString(string(text), -1) {
			if found++; !known.variables[name] && !notFlags[name] {
				t.Errorf("%s: there is no variable %s", page, name)
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d names were found", found)
	}
}
