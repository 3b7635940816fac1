package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/internal/cli"
)

func TestList(t *testing.T) {
	t.Parallel()
	b := tended(t)
	if code, out, errs := b.beside("list"); code != 0 || out != "" || errs != "no conversations\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	var ids []string
	for i := range 23 {
		ids = append(ids, b.create(""))
		if err := b.client.Rename(t.Context(), ids[i], fmt.Sprintf("Task %d\x1b", i)); err != nil {
			t.Fatal(err)
		}
	}
	_, out, errs := b.beside("list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 21 || !regexp.MustCompile(`^ID +STATE +COST +UPDATED +TITLE$`).MatchString(lines[0]) || !strings.Contains(errs, "--all") || strings.Contains(out, "\x1b") {
		t.Errorf("%s%s", out, errs)
	}
	if !regexp.MustCompile(`(?m)^` + ids[22] + `  [a-z ]+ \$0\.00 +\d+[sm] +Task 22␛$`).MatchString(out) {
		t.Errorf("the newest is missing:\n%s", out)
	}
	_, out, errs = b.beside("list", "--all", "--json")
	if strings.Count(out, "\n") != 23 || errs != "" {
		t.Errorf("%d lines, %s", strings.Count(out, "\n"), errs)
	}
	for line := range strings.Lines(out) {
		var c api.Conversation
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.ConversationID == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
	if _, out, _ = b.beside("list", "--query", "task 7"); strings.Count(out, "\n") != 2 || !strings.Contains(out, ids[7]) {
		t.Error(out)
	}
	if _, err := b.client.Stop(t.Context(), ids[3]); err != nil {
		t.Fatal(err)
	}
	if _, out, _ = b.beside("list", "--status", "stopped"); strings.Count(out, "\n") != 2 || !strings.Contains(out, ids[3]) {
		t.Error(out)
	}
	s := onScreen(t, b.program("list", "-q", "Task 9"))
	s.expect(ids[9][:8] + "  ")
	if out := s.ends(cli.ExitDone); strings.Contains(out, ids[9]) {
		t.Errorf("a terminal has no room for whole ids:\n%s", out)
	}
	narrow := b.program("list", "-q", "Task 9")
	narrow.Args = append([]string{"sh", "-c", `stty cols 40; exec "$0" "$@"`, narrow.Path}, narrow.Args[1:]...)
	narrow.Path = "/bin/sh"
	s = onScreen(t, narrow)
	s.expect("Task 9")
	if out := s.ends(cli.ExitDone); !regexp.MustCompile(`ID +\S*STATE\S* +\S*TITLE`).MatchString(out) || strings.Contains(out, "COST") {
		t.Errorf("a narrow terminal has no room for everything:\n%q", out)
	}
}

var logTime = regexp.MustCompile(`(?m)^(\d+) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)

func TestLogs(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("$ seq 30; (exit 3)")
	code, out, errs := b.beside("logs", id[:8])
	if code != 0 || errs != "" {
		t.Fatalf("%d %s", code, errs)
	}
	var text strings.Builder
	var last, at int
	for line := range strings.Lines(out) {
		m := logTime.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("a line without its number and time: %s", line)
		}
		if at, _ = strconv.Atoi(m[1]); at < last {
			t.Errorf("%d after %d", at, last)
		}
		last = at
		rest := line[len(m[0]):]
		if !strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, "· title: $ seq") { // where the sandbox is, and what comes at any time
			text.WriteString(rest)
		}
	}
	var seq strings.Builder
	for i := range 30 {
		fmt.Fprintf(&seq, "  %d\n", i+1)
	}
	golden := "· starting\n> $ seq 30; (exit 3)\n· working\nI run the command in the sandbox.\n$ seq 30; (exit 3)\n" + seq.String() + "  exit code 3\n"
	if !strings.HasPrefix(text.String(), golden) || !strings.HasSuffix(text.String(), "\n· done\n") {
		t.Errorf("%s\nwant at the beginning\n%s", text.String(), golden)
	}
	holds(t, out, "· title: $ seq 30; (exit 3)\n")
	_, rest, _ := b.beside("logs", id, "--after", strconv.Itoa(last-1))
	if !strings.HasSuffix(out, rest) || strings.Count(rest, "\n") != 1 {
		t.Error(rest)
	}
	if _, none, _ := b.beside("logs", id, "--after", strconv.Itoa(last)); none != "" {
		t.Error(none)
	}
	_, lines, _ := b.beside("logs", "--json") // the newest
	for line := range strings.Lines(lines) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%s", line)
		}
	}
	holds(t, lines, `"kind":"tool_called"`, `"title":"$ seq 30; (exit 3)"`)
}

// Follow goes on until it is ended.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("hello")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := false
	out := &alarm{on: "done", do: func() {
		if began {
			cancel()
			return
		}
		began = true
		if err := b.client.Say(context.WithoutCancel(ctx), id, "again", ""); err != nil {
			t.Error(err)
		}
	}}
	if code := run(ctx, []string{"logs", id, "-f", "--data-dir", b.dir}, out, io.Discard); code != cli.ExitInterrupted || !began {
		t.Errorf("%d", code)
	}
	var errs strings.Builder
	out = &alarm{on: "done", do: sync.OnceFunc(func() {
		if err := b.client.Delete(context.WithoutCancel(ctx), id); err != nil {
			t.Error(err)
		}
	})}
	if code := run(t.Context(), []string{"logs", id, "-f", "--data-dir", b.dir}, out, &errs); code != cli.ExitDone || errs.String() != "the conversation was deleted\n" {
		t.Errorf("%d %s", code, errs.String())
	}
}

// The link opens the page and logs the browser in, once.
func TestOpen(t *testing.T) {
	b := tended(t)
	id := b.create("")
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	code, out, errs := b.beside("open", id[:8])
	link, ticket, _ := strings.Cut(strings.TrimSpace(out), "#")
	if code != 0 || link != b.base+"/conversations/"+id || ticket == "" {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if code, text, _ := b.raw("POST", "/api/login", `{"ticket":"`+ticket+`"}`, "X-Session-API-Key", ""); code != want {
			t.Errorf("%d %s, want %d", code, text, want)
		}
	}

	bin, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" > '"+seen+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":0")
	code, out, errs = b.beside("open")
	opened, err := os.ReadFile(seen)
	if code != 0 || err != nil || !strings.HasPrefix(string(opened), link+"#") || strings.Contains(out, "#") {
		t.Errorf("%d %q %q %q %v", code, out, errs, opened, err)
	}
	if code, out, _ = b.beside("open", "--print"); code != 0 || !strings.HasPrefix(out, link+"#") {
		t.Errorf("%d %q", code, out)
	}
	// Another server's key is not ours to hand out.
	t.Setenv("DECKHAND_KEY", b.key)
	if _, out, _ = command(t, "open", "--print", "--server", b.base, "--data-dir", t.TempDir()); strings.TrimSpace(out) != link {
		t.Errorf("%q", out)
	}
}

// A key is shown to the server it is for, and to nobody else.
func TestConnecting(t *testing.T) {
	b := tended(t)
	id := b.create("")
	t.Setenv("DECKHAND_KEY", "")
	t.Setenv("DECKHAND_SERVER", "")
	asked := make(chan http.Header, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	defer other.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--data-dir", empty}, cli.ExitError, "no server is running on the data directory"},
		{[]string{"--data-dir", empty, "--server", b.base}, cli.ExitUsage, "needs a key"},
		{[]string{"--data-dir", b.dir, "--server", other.URL}, cli.ExitUsage, "needs a key"}, // not the one of the data dir
		{[]string{"--data-dir", empty, "--server", "http://192.0.2.1", "--key-file", filepath.Join(b.dir, "admin.key")}, cli.ExitUsage, "unencrypted"},
		{[]string{"--data-dir", empty, "--server", "ftp://x"}, cli.ExitUsage, "--server must be"},
		{[]string{"--data-dir", empty, "--server", elsewhere.URL, "--key-file", filepath.Join(b.dir, "admin.key")}, cli.ExitError, "redirects to another URL"},
		{[]string{"--data-dir", empty, "--server", "http://127.0.0.1:1", "--key-file", filepath.Join(b.dir, "admin.key")}, cli.ExitError, "cannot reach the server"},
		{[]string{"--data-dir", b.dir, "--key-file", write(t, "wrong")}, cli.ExitError, "key"},
		{[]string{"--data-dir", b.dir}, 0, ""},
		{[]string{"--data-dir", b.dir, "--server", b.base + "/"}, 0, ""}, // its own
		{[]string{"--data-dir", empty, "--server", b.base, "--key-file", filepath.Join(b.dir, "admin.key")}, 0, ""},
	} {
		if code, _, errs := command(t, append([]string{"list"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) || strings.Contains(errs, b.key) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	if len(asked) > 0 {
		t.Errorf("another server was asked: %v", <-asked)
	}
	for name, says := range map[string]string{"0": "", "nobody": "conversation nobody not found", "a/b": "is not a conversation ID", id[:20]: ""} {
		code, _, errs := b.beside("logs", name)
		if says == "" && name != "0" && code != 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
}
