package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

var (
	metricType = regexp.MustCompile(`(?m)^# TYPE (deckhand_\w+) (\w+)$`)
	metricName = regexp.MustCompile(`deckhand_[a-z_]+`)
	metricRow  = regexp.MustCompile("(?m)^\\| `(deckhand_\\w+)(?:\\{([a-z,]+)\\})?` \\| (\\w+) \\|")
)

// monitored is the metrics of a server on which an agent has worked, as Prometheus reads them.
func monitored(t *testing.T) (text string) {
	t.Helper()
	addr := freeAddress(t)
	b := serve(t, "", "--metrics-addr", addr)
	b.demo("scripted/demo")
	id := b.answered("$ echo ahoy")
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	b.remove(id)
	for _, secret := range []string{id, `"admin"`} {
		if strings.Contains(string(all), secret) {
			t.Errorf("the metrics have %s in a label", secret)
		}
	}
	return string(all)
}

// Every metric is documented with its type and labels, everything documented exists, the dashboard and the alert
// rules use metrics that exist, and promtool finds nothing to say.
func TestMetrics(t *testing.T) {
	t.Parallel()
	text := monitored(t)
	exported := map[string]string{}
	for _, m := range metricType.FindAllStringSubmatch(text, -1) {
		exported[m[1]] = m[2]
	}
	page, several := metricsPage(t)
	documented := map[string]string{}
	for _, m := range metricRow.FindAllStringSubmatch(page, -1) {
		documented[m[1]] = m[3]
		for _, label := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' }) {
			if !regexp.MustCompile(m[1] + `\w*\{[^}]*\b` + label + `="`).MatchString(text) {
				t.Errorf("%s has no label %s", m[1], label)
			}
		}
	}
	for name, kind := range exported {
		if documented[name] != kind {
			t.Errorf("%s is a %s, and docs/metrics.md says %q", name, kind, documented[name])
		}
	}
	for name := range documented {
		if exported[name] == "" {
			t.Errorf("docs/metrics.md has %s, which is not exported", name)
		}
	}
	for _, m := range metricRow.FindAllStringSubmatch(several, -1) { // TestMetricsOfSeveralServers looks at them
		exported[m[1]] = m[3]
	}
	for _, file := range []string{"alerts.yml", "alerts_test.yml", "alerts_backup_test.yml", "dashboard.json"} {
		b, err := os.ReadFile(filepath.Join("../../packaging/monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		if file == "dashboard.json" && !json.Valid(b) {
			t.Errorf("%s is not JSON", file)
		}
		for _, name := range metricName.FindAllString(string(b), -1) {
			base := strings.TrimSuffix(name, "_bucket")
			if exported[base] == "" || base != name && exported[base] != "histogram" {
				t.Errorf("%s uses %s, which is not exported", file, name)
			}
		}
	}
	promtool(t, text, "check", "metrics")
}

// metricsPage returns the page about metrics without the section about several servers, and that section.
func metricsPage(t *testing.T) (page, several string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), "## Several servers\n")
	several, after, more := strings.Cut(rest, "\n## ")
	if !ok || !more {
		t.Fatal("the section about several servers is missing")
	}
	return before + after, several
}

// The alert rules are valid, and fire when they must.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "alerts.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml", "alerts_backup_test.yml")
}

// promtool runs the program of this name in the folder with the rules.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	program, err := filepath.Abs("../../bin/promtool")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		if program, err = exec.LookPath("promtool"); err != nil {
			dockertest.Missing(t, "promtool is not there; scripts/promtool fetches it")
		}
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = "../../packaging/monitoring", strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Lines that are logged for a request have its ID, and those about a conversation have the conversation.
func TestLogLinesHaveTheirIDs(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.answered("$ echo ahoy")
	b.raw("GET", "/api/conversations/nobody", "")
	b.raw("GET", "/api/conversations/"+id+"/select-file?file=none", "")
	b.remove(id)
	if code := b.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	of := 0
	for line := range strings.Lines(b.logs.String()) {
		var l struct{ Msg, Request, Session, Path string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if (l.Msg == "request" || l.Path != "") && len(l.Request) != 16 {
			t.Errorf("no request ID: %s", line)
		}
		if l.Session == id {
			of++
		} else if strings.Contains(line, id) {
			t.Errorf("no session: %s", line)
		}
	}
	if of < 3 {
		t.Errorf("%d lines are about the conversation", of)
	}
}

// The log level can be shown and changed while the server runs, by a command and by an admin, until the next reload.
func TestLogLevelAtRunTime(t *testing.T) {
	t.Parallel()
	b, _ := spawn(t, filepath.Join(t.TempDir(), "data"), "--log-level", "info")
	level := func(want string, args ...string) {
		t.Helper()
		if got := strings.TrimSpace(must(t, slices.Concat([]string{"log-level", "--data-dir", b.dir}, args)...)); got != want {
			t.Errorf("said %q, wanted %q", got, want)
		}
	}
	level("info")
	b.raw("GET", "/alive", "")
	if strings.Contains(b.logs.String(), "path=/alive") || strings.Contains(b.logs.String(), `"path":"/alive"`) {
		t.Error("health checks are logged at level info")
	}
	level("debug", "debug")
	b.raw("GET", "/alive", "")
	until(t, "a health check is logged", func() bool { return strings.Contains(b.logs.String(), "/alive") })
	if err := b.client.SetLogLevel(t.Context(), "error"); err != nil {
		t.Fatal(err)
	}
	level("error")
	must(t, "config", "reload", "--data-dir", b.dir)
	level("info")
	if code, _, stderr := command(t, "log-level", "--data-dir", b.dir, "loud"); code == 0 || !strings.Contains(stderr, "debug") {
		t.Errorf("exit code %d, says %s", code, stderr)
	}
	if code, _, stderr := command(t, "log-level", "--data-dir", t.TempDir()); code == 0 || !strings.Contains(stderr, "no server is running") {
		t.Errorf("exit code %d, says %s", code, stderr)
	}
}
