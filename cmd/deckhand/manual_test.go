package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/cluster/natstest"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/store/postgres/pgtest"
)

// shellBlock is a block of commands in a page.
type shellBlock struct {
	line    int    // of its first command
	lang    string // sh, or console: commands after "$ ", each followed by its output
	text    string
	prepare string // what the reader has done before
	why     string // why it is not run, or ""
}

var (
	fenceLine   = regexp.MustCompile("^( *)```([a-z]*)$")
	notRunLine  = regexp.MustCompile(`^ *<!-- not run: (\S.*) -->$`)
	prepareLine = regexp.MustCompile(`^ *<!-- prepare: (\S.*) -->$`)
)

// shellBlocks finds the blocks of a page, and faults of the form that would leave one out.
func shellBlocks(page string) (blocks []shellBlock, faults []string) {
	var open *shellBlock
	var indent, above, before, last string
	for i, line := range strings.Split(page, "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[2] == "":
			if open.lang == "sh" || open.lang == "console" {
				blocks = append(blocks, *open)
			}
			open, above, before = nil, "", ""
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			open, indent = &shellBlock{line: i + 2, lang: m[2], prepare: before}, m[1]
			if why := notRunLine.FindStringSubmatch(above); why != nil {
				open.why = why[1]
			}
			switch open.lang {
			case "", "bash", "shell", "zsh":
				faults = append(faults, fmt.Sprintf("line %d: name the language of the block: sh or console if it is to be run, text if it is none", i+1))
			}
		case prepareLine.MatchString(line):
			before = prepareLine.FindStringSubmatch(line)[1]
		case strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "" && strings.TrimSpace(last) == "":
			faults = append(faults, fmt.Sprintf("line %d: an indented block is not run; use ```sh", i+1))
		}
		if open == nil && strings.TrimSpace(line) != "" && m == nil {
			above = line
		}
		last = line
	}
	return blocks, faults
}

// step is what is run at once, with the output that the page states for it.
type step struct {
	line         int
	script, want string
	states       bool
}

// steps are the commands of a block.
func (b shellBlock) steps() []step {
	if b.lang == "sh" {
		return []step{{line: b.line, script: b.prepare + "\n" + b.text}}
	}
	var all []step
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		more, goesOn := strings.CutPrefix(line, "> ")
		switch {
		case is:
			all = append(all, step{line: b.line + i, script: command + "\n"})
		case goesOn && len(all) > 0 && !all[len(all)-1].states:
			all[len(all)-1].script += more + "\n"
		case len(all) > 0:
			last := &all[len(all)-1]
			last.want, last.states = last.want+line+"\n", true
		}
	}
	if len(all) > 0 {
		all[0].script = b.prepare + "\n" + all[0].script
	}
	return all
}

// printed reports whether the output is the stated one, where … stands for anything.
func printed(got, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", `(?s:.*)`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(got))
}

// wrapper is the program as blocks call it. A server that a page starts is one of its own: it is
// started with the flags of the page, and ended when it listens.
const wrapper = `#!/bin/bash
export ` + asProgram + `=1
if [ "${1:-}" = config ]; then unset DECKHAND_ADDR DECKHAND_SANDBOX DECKHAND_RUNNER DECKHAND_TITLES DECKHAND_SOAK; fi # which are the test's own
[ "${1:-}" = serve ] || exec "$PROGRAM" "$@"
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/out"
[[ " $* " == *" --data-dir "* ]] || set -- "$@" --data-dir "$dir/data"
"$PROGRAM" serve "$@" --addr 127.0.0.1:0 2>"$dir/log" >"$dir/out" &
exec 3<"$dir/out"
up=
while read -r line <&3; do
	echo "$line"
	case $line in *' is at '*) up=1; break ;; esac
done
kill -TERM $!
wait $!
[ -n "$up" ] || { cat "$dir/log"; exit 1; }
`

// fetcher is curl as blocks call it: a response with an error is one of the block, unless it shows the status itself.
const fetcher = `#!/bin/bash
[[ " $* " == *" -w "* ]] || set -- --fail-with-body "$@"
PATH=${PATH#*:} exec curl "$@"
`

// documents are the pages with commands for people.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// Every command in the documentation works as it stands there, one after the other in a page, with
// the output that is stated. A block that is not run says why.
func TestCommandsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	needLocal(t)
	for _, tool := range []string{"bash", "curl", "git", "jq", "openssl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil {
			dockertest.Missing(t, tool+" is not installed")
		}
	}
	ran := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks, faults := shellBlocks(string(text))
		for _, fault := range faults {
			t.Errorf("%s, %s", page, fault)
		}
		var steps []step
		for _, b := range blocks {
			if b.why != "" {
				t.Logf("NOT RUN: %s:%d: %s", page, b.line, b.why)
				continue
			}
			steps = append(steps, b.steps()...)
		}
		for _, s := range slices.Clone(steps) { // what can be repeated must not make new keys
			if strings.Contains(s.script, "deckhand-servers") {
				steps = append(steps, s)
			}
		}
		if ran += len(steps); len(steps) > 0 {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				runSteps(t, string(text), steps)
			})
		}
	}
	if ran < 40 {
		t.Errorf("only %d commands are run", ran)
	}
}

// The addresses of PostgreSQL and NATS in pages. The test replaces them with the addresses of real servers.
const (
	manualDatabase = "127.0.0.1:5432"
	manualNATS     = "nats://127.0.0.1:4222"
)

// superuser is sudo in pages that create a database: it runs a command as the superuser of the database server. That user cannot enter the
// folder of the page.
const superuser = `#!/bin/bash
[ "$1 $2 $3" = "-u postgres psql" ] && [ "$PWD" = / ] || exit 1
shift 2
PGHOST=127.0.0.1 PGPORT=%s PGUSER=postgres exec "$@"
`

// runSteps runs the commands of a page beside a server, as a person would who has just installed it.
func runSteps(t *testing.T, page string, steps []step) {
	home, out := t.TempDir(), t.TempDir()
	bin, work, data := filepath.Join(home, "bin"), filepath.Join(home, "work"), filepath.Join(home, ".local", "share", "deckhand")
	for _, dir := range []string{bin, work, filepath.Dir(data)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"deckhand": wrapper, "curl": fetcher} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := filepath.Abs(programFile())
	if err != nil {
		t.Fatal(err)
	}
	b := serve(t, data, withSandbox(t, "local")...)
	t.Cleanup((&person{box: b}).dropAll)
	b.demo("scripted/demo")
	address := strings.TrimPrefix(b.base, "http://")
	names := []string{"127.0.0.1:3000", address, "localhost:3000", address}
	if local := regexp.MustCompile(`https://llm\.example\.org|localhost:(11434|1234|8000)\b`).FindAllString(page, -1); local != nil {
		model := llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
			if slices.Contains(a.Tools, "execute_bash") {
				return done("Hello from the model.")
			}
			return llmtest.Able("")(a)
		})
		for _, name := range local {
			to := model.URL
			if !strings.HasPrefix(name, "https://") {
				to = strings.TrimPrefix(to, "http://")
			}
			names = append(names, name, to)
		}
	}
	if strings.Contains(page, manualNATS) {
		pgtest.Available(t)
		natstest.Available(t)
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		host := free.Addr().String()
		_, port, _ := net.SplitHostPort(host)
		_ = free.Close()
		database, err := pgtest.Start("listen_addresses=127.0.0.1", "port="+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Stop() })
		if err := os.WriteFile(filepath.Join(bin, "sudo"), fmt.Appendf(nil, superuser, port), 0o755); err != nil {
			t.Fatal(err)
		}
		names = append(names, manualDatabase, host, manualNATS, natstest.Start(t, "").URL)
	}
	as := strings.NewReplacer(names...)
	script := &bytes.Buffer{}
	fmt.Fprintln(script, "set -euo pipefail")
	for i, s := range steps {
		fmt.Fprintf(script, "exec >%[1]s/%[2]d 2>&1\necho %[2]d >%[1]s/at\n%[3]s", out, i, as.Replace(s.script))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = work
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DECKHAND_") }) // those of the test run are none of the program
	cmd.Env = append(own, "HOME="+home, "XDG_DATA_HOME=", "PATH="+bin+":"+os.Getenv("PATH"), "PROGRAM="+program, "BASE="+b.base, "KEY="+b.key,
		"DECKHAND_ADDR="+address, "DECKHAND_SANDBOX=local", "DECKHAND_RUNNER="+sandboxtest.Runner(t), "DECKHAND_MODEL=scripted/demo", "TERM=dumb", "NO_COLOR=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	if strings.Contains(page, "$ID") && !strings.Contains(page, "ID=$(") {
		id := b.create("$ git init -q . && echo ahoy > log.txt")
		b.follow(id, 0, agentIs("awaiting_user_input"))
		cmd.Env = append(cmd.Env, "ID="+id)
	}
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{ApprovalMode: api.Some("risky")}); err != nil { // as the web page does
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	failed := cmd.Run()
	last := 0
	if at, err := os.ReadFile(filepath.Join(out, "at")); err == nil {
		_, _ = fmt.Sscan(string(at), &last)
	}
	for i, s := range steps[:last+1] {
		text, _ := os.ReadFile(filepath.Join(out, fmt.Sprint(i)))
		switch got := strings.ReplaceAll(string(text), address, "127.0.0.1:3000"); {
		case i == last && failed != nil:
			t.Errorf("line %d: %v\n%s\nprinted:\n%s", s.line, failed, s.script, got)
		case s.states && !printed(got, s.want):
			t.Errorf("line %d: %s\nprinted:\n%s\ninstead of:\n%s", s.line, s.script, got, s.want)
		}
	}
}

// What would be left out is found.
func TestShellBlocks(t *testing.T) {
	t.Parallel()
	const fence = "```"
	page := strings.Join([]string{
		"# Page", fence + "sh", "echo 1", fence, "<!-- not run: needs root -->", fence + "sh", "reboot", fence,
		"<!-- prepare: mkdir x -->", fence + "console", "$ ls", "x", "$ cat <<E", "> y", "> E", "y", fence, fence + "yaml", "a: 1", fence, fence, "echo 2", fence, fence + "bash", "echo 3", fence, "", "    echo 4",
	}, "\n")
	blocks, faults := shellBlocks(page)
	if len(blocks) != 3 || blocks[0].why != "" || blocks[1].why != "needs root" || blocks[2].why != "" || len(faults) != 3 {
		t.Fatalf("%+v, %q", blocks, faults)
	}
	got := blocks[2].steps()
	want := []step{{line: 11, script: "mkdir x\nls\n", want: "x\n", states: true}, {line: 13, script: "cat <<E\ny\nE\n", want: "y\n", states: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if !printed("id: 4f\nname: a b\n", "id: …\nname: a b\n") || printed("id: 4f\nname: b\n", "id: …\nname: a\n") {
		t.Error("stated output is not compared")
	}
}

// The program of the page on the Go client runs as it stands there.
func TestGoClientPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/go-client.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no program")
	}
	b := serve(t, "")
	b.demo("scripted/demo")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, m[1], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Env = append(os.Environ(), "BASE="+b.base, "KEY="+b.key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	holds(t, string(out), "1 created\n", " user_said\n", " turn_ended\n")
}
