package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"deckhand/client"
	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/soak"
)

// must runs a command that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(t, args...)
	if code != 0 || errs != "" {
		t.Fatalf("%v: %d %s", args, code, errs)
	}
	return out
}

// refuses runs a command that has to fail, and looks for what it says.
func refuses(t *testing.T, args []string, says ...string) {
	t.Helper()
	code, out, errs := command(t, args...)
	if code == 0 {
		t.Errorf("%v succeeded: %s", args, out)
	}
	for _, s := range says {
		if !strings.Contains(errs, s) {
			t.Errorf("%v: %q is not in %s", args, s, errs)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Every command tells what it does and what each of its flags means, and every
// flag of the server has a twin in the environment.
func TestHelp(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{}, kong.Name("deckhand"), kong.Vars{"data_dir": "DIR"}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()))
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	var walk func(n *kong.Node, path []string)
	walk = func(n *kong.Node, path []string) {
		help := flat(must(t, append(path, "--help")...))
		for _, c := range n.Children {
			if c.Hidden {
				continue
			}
			// A list shows the commands that can be run, not the groups they stand in.
			if !strings.Contains(help, c.Name) || c.Help == "" || len(c.Children) == 0 && !strings.Contains(help, flat(c.Help)) {
				t.Errorf("deckhand %v --help does not explain %s", path, c.Name)
			}
			walk(c, append(path[:len(path):len(path)], c.Name))
		}
		if len(n.Children) > 0 {
			return
		}
		leaves++
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				words := strings.Fields(f.Help)
				if !strings.Contains(help, "--"+f.Name) || len(words) < 2 || !strings.Contains(help, strings.TrimRight(strings.Join(words[:min(3, len(words))], " "), ".")) {
					t.Errorf("deckhand %v --help does not explain --%s (%q)", path, f.Name, f.Help)
				}
				twin := "DECKHAND_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
				if path[0] == "serve" && f.Name != "help" && (len(f.Envs) == 0 || f.Envs[0] != twin || !strings.Contains(help, twin)) {
					t.Errorf("--%s has no twin %s", f.Name, twin)
				}
			}
		}
		for _, p := range n.Positional {
			if p.Help == "" {
				t.Errorf("deckhand %v does not explain <%s>", path, p.Name)
			}
		}
	}
	walk(parser.Model.Node, nil)
	top := must(t, "--help")
	for _, heading := range []string{"Work in a folder:\n  session", "Work on a running server:\n  new", "Run a server:\n  serve", "Other:\n  doctor"} {
		if !strings.Contains(top, heading) {
			t.Errorf("%q is not in %s", heading, top)
		}
	}
	if of := must(t, "run", "--help"); strings.Index(of, "--model") > strings.Index(of, "Sandbox flags:") || !strings.Contains(of, "Sandbox flags:") {
		t.Errorf("common flags do not come first: %s", of)
	}
	for _, typed := range [][]string{{"help"}, {"help", "run"}, {"help", "key", "create"}} {
		if got, want := must(t, typed...), must(t, append(slices.Clone(typed[1:]), "--help")...); got != want {
			t.Errorf("%q prints %s", typed, got)
		}
	}
	if leaves < 11 {
		t.Errorf("only %d commands", leaves)
	}
}

// The help of serve has groups, with the common flags first.
func TestServeHelp(t *testing.T) {
	t.Parallel()
	help, last := must(t, "serve", "--help"), -1
	for _, want := range []string{"--addr", "--data-dir", "Sandbox flags:", "Single sign-on flags:", "Limit flags:", "E-mail flags:", "Monitoring and log flags:"} {
		if at := strings.Index(help, want); at <= last {
			t.Errorf("%q is at %d, after %d", want, at, last)
		} else {
			last = at
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, "user", "create", "ada", "--init", "--data-dir", dir)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"fly"}, "unknown command fly; "}, {[]string{"fix-the-parser"}, "unknown command fix-the-parser; to run a task: deckhand run"}, {[]string{"lsit"}, "unknown command lsit; did you mean list?\nRun deckhand --help"}, {[]string{"attahc"}, `did you mean attach?`}, {[]string{"-c", "--resume"}, "can't be used together"}, {[]string{"serve", "--port", "1"}, "unknown flag --port"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level"}, {[]string{"serve", "--addr", "nonsense"}, "HOST:PORT"}, {[]string{"serve", "--rate-limit", "many"}, "--rate-limit"},
		{[]string{"serve", "--tls-cert", "x.pem"}, "--tls-key"}, {[]string{"serve", "--public-url", "ftp://x"}, "--public-url"}, {[]string{"serve", "--public-url", "https://a:b@x"}, "--public-url"}, {[]string{"serve", "--public-url", "https://x?y"}, "--public-url"}, {[]string{"serve", "--public-url", "https://x/api"}, "conflicts with a path of the server"}, {[]string{"serve", "--metrics-addr", "x"}, "--metrics-addr"},
		{[]string{"serve", "--database-url", "oracle://x/y"}, "sqlite:PATH"}, {[]string{"serve", "--database-url", "sqlite:"}, "path"}, {[]string{"serve", "--allow-private", "not a host"}, ""}, {[]string{"serve", "--legacy-ui-allow", "https://x.example"}, "--legacy-ui-allow"},
		{[]string{"key", "create"}, "--user"}, {[]string{"key", "create", "--user", "Not A Name"}, "user name"}, {[]string{"key", "create", "--user", "ada", "--expires=-5h"}, "positive duration"},
		{[]string{"key", "revoke", "nobody"}, "deckhand key list"}, {[]string{"user", "disable", "nobody"}, "deckhand user list"}, {[]string{"user", "create", "Big Name"}, "user name"},
		{[]string{"serve", "--user-disk", "-5"}, `--user-disk: "-5" is not a size; use a value such as 512M`}, {[]string{"serve", "--user-sandboxes", "-5"}, "--user-sandboxes must not be negative"}, {[]string{"serve", "--user-rate-limit=-1"}, "--user-rate-limit must not be negative"}, {[]string{"serve", "--idle-close", "-1h"}, "--idle-close must not be negative"},
		{[]string{"--server", "http://127.0.0.1:1", "--confirm"}, "--confirm does not work with --server"}, {[]string{"--model", "scripted/demo", "-c", "--server", "http://127.0.0.1:1"}, "--model does not work with --server"}, {[]string{"--server", "http://127.0.0.1:1", "-y"}, "--yes does not work with --server"}, {[]string{"--server", "http://127.0.0.1:1", "--budget", "1"}, "--budget does not work with --server"},
		{[]string{"log-level", "loud"}, `deckhand: level must be one of "debug","info","warn","error" but got "loud"`}, {[]string{"list", "--status", "lost"}, `--status must be one of "starting","running","stopped" but`},
		{[]string{"doctor", "no-such-conversation"}, "there is no conversation"},
		{[]string{"new"}, "task missing; for example: deckhand new \"fix the failing test\"\nRun deckhand new --help"}, {[]string{"backup"}, "missing argument <dir>\nRun deckhand backup create --help"}, {[]string{"key"}, `missing command: use one of "create", `}, {[]string{"run", "--model"}, "--model needs a value"},
		{[]string{"run", "x", "--dir", "/missing"}, "--dir: the folder /missing does not exist"}, {[]string{"run", "x", "--image", "/missing"}, "--image: the file /missing does not exist"}, {[]string{"run", "x", "--output-schema", "/missing"}, "--output-schema: the file /missing does not exist"},
		{[]string{"run", "x", "--repo", "/missing"}, "--repo: the folder /missing does not exist"}, {[]string{"run", "x", "--sandbox", "docker", "--docker-host", "unix:///none.sock"}, "deckhand: Cannot reach the container engine at unix:///none.sock"}, {[]string{"run", "x", "--sandbox-memory", "5"}, "--sandbox-memory: a sandbox needs at least 32M"},
		{[]string{"session", "nope"}, "session nope not found; list sessions with deckhand list"}, {[]string{"-c", "nope"}, "deckhand: --continue takes no argument; use"},
		{[]string{"config", "reload"}, "start one with deckhand serve"}, {[]string{"log-level", "debug"}, "start one with deckhand serve"}, {[]string{"import", dir}, "is a folder; name a file"},
		{[]string{"run", "fix", "the", "test"}, "quote the task: deckhand run"}, {[]string{"new", "fix", "it"}, "quote the task: deckhand new"},
	} {
		args := c.args
		if len(args) > 1 {
			args = append(args[:len(args):len(args)], "--data-dir", dir)
			if args[0] == "serve" && c.args[1] != "--addr" {
				args = append(args, "--addr", "127.0.0.1:0")
			}
		}
		refuses(t, args, "deckhand:", c.says)
	}
}

func TestVersionAndOpenAPI(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"version", "--version"} {
		if out := must(t, typed); out != version+"\n" {
			t.Errorf("%s prints %q", typed, out)
		}
	}
	var doc struct {
		OpenAPI string
		Info    struct{ Version string }
		Paths   map[string]any
	}
	if err := json.Unmarshal([]byte(must(t, "openapi")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != version || doc.Paths["/api/settings"] == nil || doc.Paths["/api/conversations"] == nil {
		t.Errorf("%+v", doc)
	}
}

// used says which of the folders a command worked in.
func used(dirs map[string]string) string {
	var names []string
	for name, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "deckhand.db")); err == nil {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// A flag wins over the environment, the environment over the file, the file over the default.
func TestPrecedence(t *testing.T) {
	for _, c := range []struct{ flag, env, file, want string }{
		{"flag", "env", "file", "flag"}, {"", "env", "file", "env"}, {"", "", "file", "file"}, {"flag", "", "file", "flag"}, {"flag", "env", "", "flag"}, {"", "", "", "default"},
	} {
		home := t.TempDir()
		t.Setenv("XDG_DATA_HOME", home)
		dirs := map[string]string{"flag": filepath.Join(home, "f"), "env": filepath.Join(home, "e"), "file": filepath.Join(home, "c"), "default": filepath.Join(home, "deckhand")}
		args := []string{"user", "create", "ada", "--init"}
		if c.flag != "" {
			args = append(args, "--data-dir", dirs["flag"])
		}
		os.Unsetenv("DECKHAND_DATA_DIR")
		if c.env != "" {
			t.Setenv("DECKHAND_DATA_DIR", dirs["env"])
		}
		if c.file != "" {
			args = append(args, "--config", write(t, "data-dir: "+dirs["file"]+"\n"))
		}
		must(t, args...)
		if got := used(dirs); got != c.want {
			t.Errorf("%+v: used %s", c, got)
		}
		os.Unsetenv("DECKHAND_DATA_DIR")
	}
}

func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	list := func(text string) []string {
		return []string{"user", "list", "--data-dir", dir, "--config", write(t, text)}
	}
	must(t, "user", "create", "ada", "--init", "--data-dir", dir)
	must(t, list("# nothing\n")...)
	must(t, list("")...)
	must(t, list("rate_limit: 5\nallow-host: [a.example, b.example]\nprices:\n  acme/m: {input: 0, output: 2.5}\n")...)
	refuses(t, list("adress: 127.0.0.1:1\nzeta: 1\n"), "adress", "zeta", "unknown keys")
	refuses(t, list("addr: [unclosed\n"), "not valid YAML")
	refuses(t, list("- a\n- b\n"), "settings as name: value")
	refuses(t, list("prices:\n  acme/m: {input: -1, output: 0}\n"), "acme/m", "0 or more")
	refuses(t, list("prices:\n  acme/m: {inptu: 1, output: 0}\n"), "input and output")
	refuses(t, list("prices:\n  acme/m: cheap\n"), "0 is allowed")
	refuses(t, list("prices: 5\n"), "prices")
	refuses(t, []string{"user", "list", "--data-dir", dir, "--config", filepath.Join(dir, "nothing.yaml")}, "cannot read", "nothing.yaml")
	refuses(t, []string{"user", "list", "--data-dir", dir, "--config=" + filepath.Join(dir, "nothing.yaml")}, "cannot read")
	t.Setenv("DECKHAND_CONFIG", write(t, "unheard-of: 1\n"))
	refuses(t, []string{"user", "list", "--data-dir", dir}, "unheard-of")
}

// What the file says reaches the running server.
func TestConfigReachesTheServer(t *testing.T) {
	t.Parallel()
	b := serve(t, "", "--config", write(t, "allow-host:\n  - deckhand.example.org\nprices:\n  acme/m: {input: 1, output: 2}\n"))
	for host, want := range map[string]int{"deckhand.example.org": 200, "other.example.org": 421} {
		if status, body, _ := b.raw("GET", "/alive", "", "Host", host); status != want {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	for model, want := range map[string]int{"acme/m": 200, "acme/unknown": 400} {
		b.raw("POST", "/api/settings", `{"llm_model":"`+model+`","llm_api_key":"k","max_budget_per_task":1}`)
		if status, body, _ := b.raw("POST", "/api/conversations", `{}`); status != want {
			t.Errorf("%s: %d %s", model, status, body)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	at := func(args ...string) []string { return append(args, "--data-dir", dir) }
	key := must(t, at("key", "create", "--init", "--user", "ada", "--name", "laptop", "--expires", "720h")...)
	if !regexp.MustCompile(`^dh_[A-Za-z0-9_-]{43}\n$`).MatchString(key) {
		t.Fatalf("not just the key: %q", key)
	}
	other := must(t, at("key", "create", "--user", "ada", "--admin=false")...)
	if other == key {
		t.Error("the same key twice")
	}
	must(t, at("key", "create", "--user", "bob")...)
	out := must(t, at("key", "list")...)
	if strings.Contains(out, strings.TrimSpace(key)) || strings.Count(out, "\n") != 4 || !strings.Contains(out, "laptop") || !strings.Contains(out, "never") || strings.Count(out, "active") != 3 {
		t.Errorf("%s", out)
	}
	mine := must(t, at("key", "list", "--user", "ada")...)
	if strings.Contains(mine, "bob") || strings.Count(mine, "ada") != 2 {
		t.Errorf("%s", mine)
	}
	id := regexp.MustCompile(`(?m)^([0-9a-f]{12})\s+ada\s+laptop`).FindStringSubmatch(mine)
	if id == nil {
		t.Fatalf("%s", mine)
	}
	if said := must(t, at("key", "revoke", id[1])...); said != "revoked "+id[1]+" of ada\n" {
		t.Errorf("%q", said)
	}
	must(t, at("key", "revoke", id[1])...) // again changes nothing
	if out := must(t, at("key", "list", "--user", "ada")...); strings.Count(out, "revoked") != 1 {
		t.Errorf("%s", out)
	}
	refuses(t, at("key", "create", "--user", "ada", "--admin"), "not an administrator")
}

// Commands that need data of a server refuse when there is none, and create nothing.
func TestCommandsThatNeedData(t *testing.T) {
	t.Parallel()
	none, empty := filepath.Join(t.TempDir(), "nope"), t.TempDir()
	for _, args := range [][]string{{"key", "list"}, {"key", "revoke", "x"}, {"key", "rotate-master"}, {"user", "list"}, {"user", "disable", "x"}, {"user", "enable", "x"}, {"doctor", "x"}} {
		refuses(t, append(args, "--data-dir", none), "no data directory at "+none+": start a server")
		refuses(t, append(args, "--data-dir", empty), "no database at "+filepath.Join(empty, "deckhand.db"))
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("the data directory was created")
	}
	if made, err := os.ReadDir(empty); err != nil || len(made) > 0 {
		t.Errorf("created %v, %v", made, err)
	}
}

// The last way in for an administrator is not closed by accident.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, "key", "create", "--init", "--user", "root1", "--admin", "--data-dir", dir)
	id := regexp.MustCompile(`[0-9a-f]{12}`).FindString(must(t, "key", "list", "--data-dir", dir))
	refuses(t, []string{"key", "revoke", id, "--data-dir", dir}, "last usable admin key")
	refuses(t, []string{"user", "disable", "root1", "--data-dir", dir}, "last usable admin key")
	must(t, "key", "revoke", id, "--force", "--data-dir", dir)
}

func TestUsers(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	at := func(args ...string) []string { return append(args, "--data-dir", b.dir) }
	if out := must(t, at("user", "create", "carol")...); !strings.Contains(out, "deckhand key create --user carol") {
		t.Errorf("%q", out)
	}
	refuses(t, at("user", "create", "carol"), "already")
	carol := client.New(b.base, strings.TrimSpace(must(t, at("key", "create", "--user", "carol")...)))
	works := func() int {
		_, err := carol.Keys(t.Context())
		if err == nil {
			return 200
		}
		return statusOf(err)
	}
	if works() != 200 {
		t.Fatal("the new key does not work at once")
	}
	if out := must(t, at("user", "disable", "carol")...); out != "disabled carol\n" {
		t.Errorf("%q", out)
	}
	if out := must(t, at("user", "list")...); !regexp.MustCompile(`(?m)^carol\s+false\s.*disabled$`).MatchString(out) || !regexp.MustCompile(`(?m)^admin\s+true\s.*active$`).MatchString(out) {
		t.Errorf("%s", out)
	}
	if works() != 401 {
		t.Error("a disabled user comes in")
	}
	refuses(t, at("key", "create", "--user", "carol"), "disabled")
	if out := must(t, at("user", "enable", "carol")...); out != "enabled carol\n" {
		t.Errorf("%q", out)
	}
	if works() != 200 {
		t.Error("an enabled user does not come in")
	}
}

// A server that is stopped during its start ends like one that is stopped later.
func TestStoppedDuringStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"serve", "--data-dir", filepath.Join(t.TempDir(), "data"), "--addr", "127.0.0.1:0", "--sandbox", "host"}, &out, &errs); code != 0 || strings.Contains(errs.String(), "canceled") {
		t.Errorf("exit code %d, says %s %s", code, &out, &errs)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	free := "127.0.0.1:0"
	fresh := filepath.Join(t.TempDir(), "not", "there")
	if out := must(t, "doctor", "--data-dir", fresh, "--addr", free); !strings.HasSuffix(out, "All checks passed.\n") || strings.Contains(out, "FAIL") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("looking made the data dir")
	}
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	if err := os.Chmod(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{free, strings.TrimPrefix(b.base, "http://")} { // beside the running server
		if out := must(t, "doctor", "--data-dir", b.dir, "--addr", addr); !strings.Contains(out, "master key") || strings.Contains(out, "1 users") || !strings.HasSuffix(out, "All checks passed.\n") {
			t.Errorf("%s: %s", addr, out)
		}
	}
	if out := must(t, "doctor", id, "--data-dir", b.dir); !strings.Contains(out, "all valid") || !strings.Contains(out, "RUNNING") || !strings.Contains(out, id) {
		t.Errorf("%s", out)
	}
	b.stop()
	must(t, "doctor", "--data-dir", b.dir, "--addr", free)
	must(t, "doctor", id, "--data-dir", b.dir)

	failing := func(says string, args ...string) {
		t.Helper()
		code, out, errs := command(t, append([]string{"doctor"}, args...)...)
		if code == 0 || !strings.Contains(out, "FAIL") || !strings.Contains(out, says) || !strings.Contains(errs, "failed") {
			t.Errorf("%v: %d %s%s, want %q", args, code, out, errs, says)
		}
	}
	busy, err := net.Listen("tcp", free)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	failing("choose another --addr", "--data-dir", b.dir, "--addr", busy.Addr().String())
	if err := os.Chmod(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	failing("chmod 700", "--data-dir", b.dir, "--addr", free)
	failing("not a folder", "--data-dir", write(t, "x"), "--addr", free)
	failing("sqlite:PATH", "--data-dir", fresh, "--database-url", "mysql://x", "--addr", free)
	if err := os.Chmod(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(b.dir, "master.key"), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	failing("master key", "--data-dir", b.dir, "--addr", free)
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, "deckhand.db"), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(garbage, 0o700); err != nil {
		t.Fatal(err)
	}
	failing("database opens", "--data-dir", garbage, "--addr", free)
}

// A log that breaks a rule is found, and ends after its last good event when repaired.
func TestDoctorRepairs(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	b.stop()
	d, err := openData(t.Context(), config.DataFlags{DataDir: b.dir}, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.OpenKeyring(t.Context(), b.dir, "", d.db)
	if err == nil {
		err = datadir.UseChain(t.Context(), d.db, keyring)
	}
	if err != nil {
		t.Fatal(err)
	}
	row, err := d.db.Row(t.Context(), session.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	// What no rule allows: a turn that ends although none is under way.
	bad := session.Batch{ID: session.ID(id), After: row.Last, Row: row, Events: []session.Event{
		{Number: row.Last + 1, At: row.UpdatedAt, Payload: session.TurnEnded{UpTo: row.Last}}}}
	bad.Row.Last++
	if err := d.db.Append(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t, "doctor", "--data-dir", b.dir, id)
	if code == 0 || !strings.Contains(errs, "no turn is under way") || !strings.Contains(errs, "--repair") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	// Without the master key, the new end of the log could not become part of the hash chain.
	key, away := filepath.Join(b.dir, "master.key"), filepath.Join(t.TempDir(), "master.key")
	if err := os.Rename(key, away); err != nil {
		t.Fatal(err)
	}
	if code, _, errs = command(t, "doctor", "--data-dir", b.dir, "--repair", id); code == 0 || !strings.Contains(errs, "not repaired, because the master key is missing") {
		t.Errorf("without the master key: %d %s", code, errs)
	}
	if err := os.Rename(away, key); err != nil {
		t.Fatal(err)
	}
	if code, out, errs = command(t, "doctor", "--data-dir", b.dir, "--repair", id); code != 0 || !strings.Contains(out, "removed events") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if code, out, errs = command(t, "doctor", "--data-dir", b.dir, id); code != 0 || !strings.Contains(out, "all valid") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	b = serve(t, b.dir)
	if err := b.client.Say(t.Context(), id, "still there?", ""); err != nil {
		t.Fatal(err)
	}
	b.follow(id, row.Last, agentIs("awaiting_user_input"))
}
