package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/cli/completion"
)

// words are what could be typed after these ones.
func (b *box) words(args ...string) []string {
	b.t.Helper()
	var out []string
	_, text, _ := command(b.t, append([]string{completion.Word}, args...)...)
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(line, "\t")
		out = append(out, word)
	}
	return out
}

func TestComplete(t *testing.T) {
	b := tended(t)
	id := b.create("")
	if err := b.client.Rename(t.Context(), id, "Two\nlines\x1b"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DECKHAND_DATA_DIR", b.dir)
	for _, c := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"at"}, []string{"attach"}},
		{[]string{"ref"}, nil}, // hidden
		{[]string{"key", ""}, []string{"create", "list", "revoke", "rotate-master"}},
		{[]string{"logs", "--fol"}, []string{"--follow"}},
		{[]string{"attach", ""}, []string{id}},
		{[]string{"attach", "--after", "3", id[:4]}, []string{id}},
		{[]string{"logs", "-f", ""}, []string{id}},
		{[]string{"logs", id, ""}, nil},
		{[]string{"open", "--data-dir", t.TempDir(), ""}, nil}, // another server's
		{[]string{"open", "--key-file", ""}, []string{":files"}},
		{[]string{"completion", ""}, []string{"bash", "fish", "zsh"}},
		{[]string{"serve", "--log-format", ""}, []string{"json", "text"}},
		{[]string{"serve", "--log-format=j"}, []string{"--log-format=json"}},
		{[]string{"run", "task", "--model", "scripted/d"}, []string{"scripted/demo"}},
		{[]string{"doctor", "--model", "scripted/d"}, nil}, // there it is a question
		{[]string{"nonsense", "--more", ""}, b.words("")},
		{nil, nil},
	} {
		if got := b.words(c.typed...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.typed, got, c.want)
		}
	}
	if all := b.words(""); !slices.Contains(all, "serve") || slices.Contains(all, completion.Word) {
		t.Errorf("%q", all)
	}
	_, text, _ := command(t, completion.Word, "open", "")
	if strings.Count(text, "\n") != 1 || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// Each shell completes with the script that is made for it.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.create("")
	bin := t.TempDir()
	wrapper := "#!/bin/sh\nexport " + asProgram + "=1\nexec '" + programFile() + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "deckhand"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	for shell, c := range map[string]struct {
		script string
		args   []string
	}{
		"bash": {`source <(deckhand completion bash)
			try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=(); _deckhand deckhand; echo "$*: ${COMPREPLY[*]}"; }
			compopt() { COMPREPLY=(files); }
			try deckhand at; try deckhand attach ''; try deckhand serve --log-format = j; try deckhand serve --log-format =; try deckhand open --key-file ''; complete -p deckhand`, []string{"--noprofile", "--norc", "-c"}},
		"zsh": {`source <(deckhand completion zsh)
			_describe() { print -r -- "${words[*]}: ${found[*]%%:*}"; }; _files() { print -r -- "${words[*]}: files"; }
			try() { words=("$@"); CURRENT=$#; _deckhand; }
			try deckhand at; try deckhand attach ''; try deckhand open --key-file ''; print -r -- $_comps[deckhand]`, []string{"-f", "-c"}},
		"fish": {`deckhand completion fish | source
			for typed in 'deckhand at' 'deckhand attach ' 'deckhand serve --log-format j'
				echo "$typed: "(complete -C $typed | string split -f1 \t)
			end`, []string{"--no-config", "-c"}},
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("MISSING: %s is not installed", shell)
				}
				t.Skipf("SKIPPED: %s is not installed, so its completion is not tried", shell)
			}
			cmd := exec.Command(path, append(c.args, c.script)...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DECKHAND_DATA_DIR="+b.dir, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			wants := []string{"deckhand at: attach\n", "deckhand attach : " + id + "\n"}
			switch shell {
			case "bash":
				wants = append(wants, "--log-format = j: json\n", "--log-format =: json text\n", "--key-file : files\n", "complete -F _deckhand deckhand")
			case "zsh":
				wants = append(wants, "--key-file : files\n", "\n_deckhand\n")
			case "fish":
				wants = append(wants, "--log-format j: json\n")
			}
			holds(t, string(out), wants...)
		})
	}
}
