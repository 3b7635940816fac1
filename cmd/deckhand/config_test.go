package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"deckhand/internal/config"
	"deckhand/internal/soak"
)

func writeConfig(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each setting is shown with its source, and the password of a URL is not shown.
func TestConfigShow(t *testing.T) {
	dir := t.TempDir()
	file := writeConfig(t, filepath.Join(dir, "c.yaml"), "rate-burst: 7\nsmtp_url: smtp://ada:hunter2@localhost:587?from=a@example.org\negress: allowlist\negress-allow: [a.example.org, b.example.org]\nlog-level: warn\n")
	t.Setenv("DECKHAND_LOG_LEVEL", "error")
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	writeConfig(t, filepath.Join(dir, "oidc-client-secret"), "hush")
	t.Setenv("DECKHAND_OIDC_ISSUER", "https://id.example.org")
	t.Setenv("DECKHAND_OIDC_CLIENT_ID", "d")
	var all []config.Setting
	if err := json.Unmarshal([]byte(must(t, "config", "show", "--json", "--all", "--config", file, "--titles", "task")), &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"rate-burst":              {"7", "config file"},
		"egress-allow":            {"a.example.org,b.example.org", "config file"},
		"smtp-url":                {"smtp://ada:xxxxx@localhost:587?from=a@example.org", "config file"},
		"log-level":               {"error", "environment DECKHAND_LOG_LEVEL"},
		"titles":                  {"task", "command line"},
		"oidc-client-secret-file": {filepath.Join(dir, "oidc-client-secret"), "credential oidc-client-secret"},
		"idle-close":              {"1h0m0s", "default"},
		"sandbox-memory":          {"4G", "default"},
	} {
		i := slices.IndexFunc(all, func(s config.Setting) bool { return s.Name == name })
		if i < 0 || all[i].Value != want[0] || all[i].Source != want[1] {
			t.Errorf("%s: got %+v, wanted %q", name, all[max(i, 0)], want)
		}
	}
	shown := must(t, "config", "show", "--config", file)
	if !strings.Contains(shown, "rate-burst") || strings.Contains(shown, "idle-close") || strings.Contains(shown, "hunter2") {
		t.Errorf("printed %s", shown)
	}
}

// A source of a setting takes precedence over the later ones, also if one names a file with the value of the other. ~ is the home folder.
func TestSourcesOfSettings(t *testing.T) {
	dir := t.TempDir()
	const mail = "smtp://localhost:587?from=a@example.org"
	t.Setenv("HOME", dir)
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for _, name := range []string{"smtp-url", "database-url", "nats-url"} {
		writeConfig(t, filepath.Join(dir, name), "")
	}
	writeConfig(t, filepath.Join(dir, "smtp-url"), mail)
	file := writeConfig(t, filepath.Join(dir, "c.yaml"), "smtp-url: "+mail+"\ndata-dir: ~/foo\nmodels:\n  a/b: {window: 5}\n")
	t.Setenv("DECKHAND_DATABASE_URL", "sqlite:~/d.db")
	t.Setenv("DECKHAND_MICROAGENTS", "~/")
	t.Setenv("DOCKER_HOST", "tcp://u:hunter2@127.0.0.1:1")
	t.Setenv("DECKHAND_MASTER_KEY", "foo")
	code, out, stderr := command(t, "config", "show", "--json", "--all", "--config=~/"+filepath.Base(file), "--nats-url", "nats://127.0.0.1:1", "--sandbox", "auto", "--cassettes=~/")
	if code != 2 || !strings.Contains(stderr, "DECKHAND_MASTER_KEY") {
		t.Errorf("an invalid configuration: exit code %d, says %s", code, stderr)
	}
	var all []config.Setting
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]config.Setting{
		"smtp-url":          {Source: "default", Default: "no e-mail"},
		"smtp-url-file":     {Value: filepath.Join(dir, "smtp-url"), Source: "credential smtp-url"},
		"database-url":      {Value: "sqlite:~/d.db", Source: "environment DECKHAND_DATABASE_URL"},
		"database-url-file": {Source: "default", Default: "none"},
		"nats-url-file":     {Source: "default", Default: "none"},
		"data-dir":          {Value: filepath.Join(dir, "foo"), Source: "config file"},
		"microagents":       {Value: dir, Source: "environment DECKHAND_MICROAGENTS"},
		"cassettes":         {Value: dir, Source: "command line"},
		"docker-host":       {Value: "tcp://u:xxxxx@127.0.0.1:1", Source: "environment DOCKER_HOST"},
		"models":            {Value: "(set)", Source: "config file"},
		"master-key":        {Value: "xxxxx", Source: "environment DECKHAND_MASTER_KEY"},
		"user-sandboxes":    {Value: "0", Source: "default", Default: "one per 128 MiB of this machine's memory, but at least 16"},
		"delete-after":      {Value: "0", Source: "default", Default: "never"},
		"user-budget":       {Value: "0", Source: "default", Default: "none"},
		"max-queued":        {Value: "0", Source: "default", Default: "10,000"},
	} {
		i := slices.IndexFunc(all, func(s config.Setting) bool { return s.Name == name })
		if i < 0 || all[i].Value != want.Value || all[i].Source != want.Source || all[i].Default != want.Default {
			t.Errorf("%s: got %+v, wanted %+v", name, all[max(i, 0)], want)
		}
	}
	if slices.ContainsFunc(all, func(s config.Setting) bool { return s.Name == "json" || s.Name == "all" }) {
		t.Errorf("flags of the command are listed: %s", out)
	}
	t.Setenv("DECKHAND_MASTER_KEY", "")
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for _, c := range []struct{ name, value, says string }{
		{"DECKHAND_ADDR", "foo", `--addr "foo" is not HOST:PORT (environment variable DECKHAND_ADDR)`},
		{"DECKHAND_IDLE_CLOSE", "soon", `--idle-close: "soon" is not a duration; use a value such as 30s, 10m or 1h30m (environment variable DECKHAND_IDLE_CLOSE)`},
		{"DOCKER_HOST", "bogus", "DOCKER_HOST bogus: the address must be unix:///PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if code, _, stderr := command(t, "config", "check", "--sandbox", "docker"); code != 2 || !strings.Contains(stderr, c.says) || strings.Count(stderr, c.name) != 1 {
				t.Errorf("exit code %d, says %s", code, stderr)
			}
		})
	}
	t.Setenv("DOCKER_HOST", "")
	if got := must(t, "config", "check", "--sandbox", "host", "--docker-host", "unix:///run/x"); !strings.Contains(got, "warning: --docker-host has no effect with --sandbox host") {
		t.Errorf("printed %s", got)
	}
}

// A misspelled variable has no effect, so it is reported.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("DECKHAND_IDLE_CLOZE", "5m")
	t.Setenv("DECKHAND_IDLE_CLOSE", "5m")
	if got := must(t, "config", "check"); !strings.Contains(got, "unknown environment variable DECKHAND_IDLE_CLOZE") || strings.Contains(got, "variable DECKHAND_IDLE_CLOSE;") || !strings.Contains(got, "The configuration is valid.") {
		t.Errorf("printed %s", got)
	}
	if b := serve(t, ""); !strings.Contains(b.logs.String(), `"unknown environment variable; check its spelling","name":"DECKHAND_IDLE_CLOZE"`) {
		t.Errorf("logged %s", b.logs)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := writeConfig(t, filepath.Join(dir, "good.yaml"), "rate-burst: 7\n")
	if got := must(t, "config", "check", "--config", good); !strings.HasSuffix(got, "The configuration is valid.\nConfig file: "+good+"\n") {
		t.Errorf("printed %s", got)
	}
	if code, _, stderr := command(t, "config", "check", "--config", good, "--rate-burst", "-1"); code == 0 || strings.Contains(stderr, good) {
		t.Errorf("a wrong flag on the command line: exit code %d, says %s", code, stderr)
	}
	for text, says := range map[string]string{
		"adr: 127.0.0.1:1\n":                    "has unknown keys: adr",
		"addr: 0.0.0.0:80\n":                    "--behind-proxy",
		"log-level: loud\n":                     "--log-level",
		"tls-cert: a\ntls-key: b\n":             "--tls-cert and --tls-key: open a",
		"prices:\n  a/b: {input: 1}\n":          "prices in",
		"a: [\n":                                "is not valid YAML",
		"addr: 127.0.0.1:99999\n":               "--addr",
		"smtp-url: mailhost\n":                  "--smtp-url",
		"database-url: oracle:x\n":              "--database-url",
		"oidc-issuer: id.example.org\n":         "--oidc-issuer: the issuer must be",
		"otlp-endpoint: foo\n":                  "--otlp-endpoint",
		"allow-private: [foo]\n":                "--allow-private",
		"egress-private: foo\n":                 "--egress-private",
		"egress-allow: [a.example]\n":           "--egress-allow needs",
		"user-budget: .nan\n":                   "--user-budget",
		"sandbox-cpus: 0\n":                     "--sandbox-cpus",
		"sandbox-memory: 1M\n":                  "--sandbox-memory",
		"oidc-name: x\n":                        "need --oidc-issuer",
		"oidc-issuer: https://id.example.org\n": "--oidc-client-id",
		"oidc-issuer: https://id.example.org\noidc-client-id: d\noidc-client-secret-file: /nonexistent\n": "--oidc-client-secret-file",
		"oidc-issuer: https://id.example.org\noidc-client-id: d\noidc-allowed-domains: ['*']\n":           "e-mail domain",
		"sandbox: docker\ndocker-host: foo\n":                                                             "--docker-host foo",
		"docker-host: foo\n":                                                                              "--docker-host foo",
		"sandbox: docker\ndocker-host: ['unix:///run/a.sock', 'unix:///run/a.sock']\n":                    "is set twice",
		"database-url: postgres://u:hunter2@h/d\n  bad: [x\n":                                             "is not valid YAML: line ",
		"help: true\n":               "unknown keys",
		"- a\n":                      "settings as name: value",
		"addr: a\naddr: b\n":         "line 2 sets addr again",
		"idle-close: soon\n":         `--idle-close: "soon" is not a duration; use a value such as 30s, 10m or 1h30m (config file `,
		"idle-close: 5x\n":           `--idle-close: "5x" is not a duration; use`,
		"rate-burst: many\n":         `--rate-burst: "many" is not a whole number; use a value such as 16 (config file `,
		"rate-limit: many\n":         `"many" is not a number; use a value such as 16 or 0.5 (config file `,
		"behind-proxy: maybe\n":      `"maybe" is not a value of a switch; use true or false`,
		"data-dir: " + good + "\n":   "is not a folder",
		"sandbox-rootfs: /missing\n": "--sandbox-rootfs: the folder /missing does not exist",
		"microagents: /missing\n":    "--microagents: the folder /missing does not exist",
		"cassettes: /missing\n":      "--cassettes: the folder /missing does not exist",
		"sandbox-user: a b\n":        "--sandbox-user",
		"allow-host: a b\n":          "--allow-host",
		"allow-origin: example\n":    "--allow-origin",
		"sandbox: docker\ndocker-host: 'ssh://root:hunter2@127.0.0.1'\n": "--docker-host ssh://root:xxxxx@127.0.0.1: ",
		"max-running: -7\n": "--max-running",
	} {
		bad := writeConfig(t, filepath.Join(dir, "bad.yaml"), text)
		code, _, stderr := command(t, "config", "check", "--config", bad)
		if code != 2 || !strings.Contains(stderr, says) || !strings.Contains(stderr, bad) && !strings.Contains(stderr, "--oidc-…") { // several flags together
			t.Errorf("%q: exit code %d, says %s", text, code, stderr)
		}
		if strings.Contains(stderr, "hunter2") {
			t.Errorf("%q: says %s", text, stderr)
		}
	}
}

func TestConfigCheckMasterKey(t *testing.T) {
	t.Setenv("DECKHAND_MASTER_KEY", "foo")
	refuses(t, []string{"config", "check"}, "DECKHAND_MASTER_KEY")
}

// A running server applies the changes that need no restart, lists the others, and changes nothing if the file is invalid.
func TestConfigReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mail := writeConfig(t, filepath.Join(dir, "mail"), "smtp://ada:hunter2@localhost:587?from=a@example.org\n")
	file := writeConfig(t, filepath.Join(dir, "c.yaml"), "log-level: info\nsmtp-url-file: "+mail+"\n")
	b, cmd := spawn(t, filepath.Join(dir, "data"), "--config", file)
	reload := func(wanted string) {
		t.Helper()
		if got := must(t, "config", "reload", "--data-dir", b.dir); strings.TrimSpace(got) != wanted {
			t.Errorf("said %q, wanted %q", got, wanted)
		}
	}
	reload("Reloaded; nothing changed.")
	writeConfig(t, mail, "smtp://ada:hunter3@localhost:587?from=a@example.org\n")
	reload("Reloaded; nothing changed. Restart the server to change: smtp-url-file.")
	writeConfig(t, mail, "smtp://ada:hunter2@localhost:587?from=a@example.org\n")
	writeConfig(t, file, "log-level: debug\nrate-burst: 7\nsmtp-url-file: "+mail+"\nmodels:\n  openai/mine: {window: 1000}\n")
	reload("Reloaded: log-level, models. Restart the server to change: rate-burst.")
	reload("Reloaded; nothing changed. Restart the server to change: rate-burst.")
	found, err := b.client.SearchModels(t.Context(), "mine", "", false)
	if err != nil || len(found.Models) == 0 || found.Models[0].ID != "openai/mine" {
		t.Errorf("the new model was not found: %+v %v", found, err)
	}
	writeConfig(t, file, "max-running: -7\nsmtp-url-file: "+mail+"\n")
	if _, _, stderr := command(t, "config", "reload", "--data-dir", b.dir); strings.Count(stderr, "must not be negative") != 1 {
		t.Errorf("says %s", stderr)
	}
	writeConfig(t, file, "log-level: loud\n")
	if code, _, stderr := command(t, "config", "reload", "--data-dir", b.dir); code == 0 || !strings.Contains(stderr, "--log-level") {
		t.Errorf("exit code %d, says %s", code, stderr)
	}
	writeConfig(t, file, "log-level: [\n")
	if code, _, stderr := command(t, "config", "reload", "--data-dir", b.dir); code == 0 || strings.Contains(stderr, "--help") || !strings.Contains(stderr, "is not valid YAML") {
		t.Errorf("exit code %d, says %s", code, stderr)
	}
	writeConfig(t, file, "log-level: info\nsmtp-url-file: "+mail+"\n")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "the server reloads", func() bool { return strings.Contains(b.logs.String(), "Reloaded: log-level, models.") })
	if _, err := b.client.Settings(t.Context()); err != nil && !strings.Contains(err.Error(), "404") {
		t.Errorf("the server does not respond after SIGHUP: %v", err)
	}
	if strings.Contains(b.logs.String(), "hunter") {
		t.Errorf("the password is in the log: %s", b.logs)
	}
}

// A server that was started in a shell with & reloads on kill -HUP, and stops when the terminal is closed.
func TestHangUp(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts a server as a process")
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: there is no bash")
	}
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	b := &box{t: t, dir: t.TempDir(), logs: &syncBuffer{}}
	server := process(append([]string{"serve", "--data-dir", b.dir, "--addr", "127.0.0.1:0"}, plainSandbox(t, nil)...)...)
	cmd := exec.Command(shell, "--norc", "--noprofile", "-i")
	cmd.Env, cmd.Stdin, cmd.Stderr, cmd.SysProcAttr = server.Env, tty, b.logs, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	fmt.Fprintf(screen, "'%s' &\n", strings.Join(server.Args, "' '"))
	b.readGreeting(out)
	fmt.Fprintln(screen, "kill -HUP %1")
	until(t, "the server reloads", func() bool { return strings.Contains(b.logs.String(), "Reloaded; nothing changed.") })
	screen.Close()
	_ = cmd.Wait() // until the server has closed its output
	if !strings.Contains(b.logs.String(), "the terminal was closed") {
		t.Errorf("logged %s", b.logs)
	}
}

// A key is not created in a database that no server uses: the wrong data directory must not look like an empty server.
func TestKeyCreateNeedsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{{"key", "create", "--user", "admin", "--admin"}, {"user", "create", "ada"}} {
		refuses(t, append(args, "--data-dir", dir), "no data directory at "+dir)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was created")
	}
	if got := must(t, "key", "create", "--user", "admin", "--admin", "--init", "--data-dir", dir); !strings.HasPrefix(got, "dh_") {
		t.Errorf("printed %s", got)
	}
}

// A command without the database URL of the server does not work on another database, such as the file that was left after a migration.
func TestCommandsUseTheDatabaseOfTheServer(t *testing.T) {
	t.Parallel()
	dir, url := t.TempDir(), "sqlite:"+filepath.Join(t.TempDir(), "moved.db")
	must(t, "user", "create", "ada", "--init", "--data-dir", dir)
	serve(t, dir, "--database-url", url)
	for _, args := range [][]string{{"key", "create", "--user", "ada"}, {"user", "list"}, {"backup", filepath.Join(t.TempDir(), "b")}} {
		refuses(t, append(args, "--data-dir", dir), "the server running on "+dir+" uses the database "+url+", not "+filepath.Join(dir, "deckhand.db"))
		must(t, append(args, "--data-dir", dir, "--database-url", url)...)
	}
	if code, out, _ := command(t, "doctor", "--data-dir", dir, "--sandbox", "host"); code == 0 || !strings.Contains(out, "FAIL  database         the server running on") {
		t.Errorf("doctor: %d\n%s", code, out)
	}
}

// Before the first start, doctor connects to the database server that would be used.
func TestDoctorBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t, "doctor", "--data-dir", filepath.Join(t.TempDir(), "missing"), "--database-url", "postgres://u:hunter2@127.0.0.1:1/d", "--sandbox", "host")
	if code == 0 || !strings.Contains(out, "FAIL  database opens") || strings.Contains(out, "hunter2") || strings.Count(out, "connection refused") != 1 {
		t.Errorf("exit code %d, printed %s", code, out)
	}
}
