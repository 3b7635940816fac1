package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	_ "deckhand/internal/tool/toolbox" // lists the tools
)

func TestRate(t *testing.T) {
	long := strings.Repeat("a", 500)
	for _, c := range []struct {
		name     string
		readOnly bool
		args     string
		want     risk.Rating
	}{
		{"think", false, `{"thought":"rm -rf /"}`, risk.Low},
		{"finish", false, `{}`, risk.Low},
		{"task_tracker", false, ``, risk.Low},
		{"grep", true, `{"pattern":"x"}`, risk.Low},
		{"delegate", false, `{}`, risk.Medium},
		{"execute_bash", false, `{"command":"ls"}`, risk.Low},
		{"execute_bash", false, `{"command":""}`, risk.Low},
		{"execute_bash", false, `{"command":"rm -rf /","security_risk":"LOW"}`, risk.High},
		{"execute_bash", false, `{"command":"C-c","is_input":"true"}`, risk.Low},
		{"execute_bash", false, `{"command":"C-d","is_input":true}`, risk.Low},
		{"execute_bash", false, `{"command":"rm -rf /","is_input":"true"}`, risk.Unknown},
		{"execute_bash", false, `{"command":"ls","is_input":"false"}`, risk.Low},
		{"execute_bash", false, `{"command":7}`, risk.Unknown},
		{"execute_bash", false, `{}`, risk.Unknown},
		{"execute_bash", false, `{"command":"ls","command":"rm -rf /"}`, risk.Unknown},
		{"execute_bash", false, `{"command":"ls","COMMAND":"rm -rf /"}`, risk.Unknown},
		{"execute_bash", false, `not json`, risk.Unknown},
		{"execute_bash", false, `null`, risk.Unknown},
		{"execute_ipython_cell", false, `{"code":"1"}`, risk.Unknown},
		{"str_replace_editor", false, `{"command":"view","path":"/workspace/a"}`, risk.Low},
		{"str_replace_editor", true, `{"command":"view","path":"/root/.ssh/id_rsa"}`, risk.Medium},
		{"str_replace_editor", false, `{"command":"create","path":"/workspace/a"}`, risk.Medium},
		{"str_replace_editor", false, `{"command":"create","path":"/workspace/.git/hooks/pre-commit"}`, risk.High},
		{"str_replace_editor", false, `{"command":"create","path":"/workspace/x/../.GIT/config"}`, risk.High},
		{"str_replace_editor", false, `{"command":"create","path":"/workspace/.github/workflows/ci.yml"}`, risk.High},
		{"str_replace_editor", false, `{"command":"str_replace","path":"/etc/passwd"}`, risk.High},
		{"str_replace_editor", false, `{"command":"str_replace","path":"/home/me/.bashrc"}`, risk.High},
		{"str_replace_editor", false, `{"command":"insert","path":"/home/me/.ssh/config"}`, risk.High},
		{"str_replace_editor", false, `{"command":"create","path":"/workspace/a\u202eb"}`, risk.High},
		{"str_replace_editor", false, `{"command":"create"}`, risk.Unknown},
		{"edit_file", false, `{"command":"view","path":"/workspace/a"}`, risk.Medium},
		{"browser", false, `{"code":"goto('http://localhost:8000')"}`, risk.Low},
		{"browser", false, `{"code":"goto('http://127.0.0.1:8000/x')\nscroll(0, 100)"}`, risk.Low},
		{"browser", false, `{"code":"goto('https://example.org')"}`, risk.Medium},
		{"browser", false, `{"code":"goto('http://127.evil.example/')"}`, risk.Medium},
		{"browser", false, `{"code":"goto('http://localhost@example.org/')"}`, risk.High},
		{"browser", false, `{"code":"goto('https://example.org/?q=` + long + `')"}`, risk.High},
		{"browser", false, `{"code":"fill('3', 'text (with) brackets')"}`, risk.Medium},
		{"browser", false, `{"code":"noop()\nupload_file('3','/workspace/x')"}`, risk.High},
		{"browser", false, `{"code":"evaluate('x')"}`, risk.Unknown},
		{"browser", false, `{"code":"import os"}`, risk.Unknown},
		{"browser", false, `{"code":"goto('x"}`, risk.Unknown},
		{"fetch", true, `{"url":"https://example.org/doc"}`, risk.Medium},
		{"fetch", true, `{"url":"https://example.org/?x=` + long + `"}`, risk.High},
		{"fetch", true, `{"url":"file:///etc/passwd"}`, risk.Unknown},
		{"fetch", true, `{}`, risk.Unknown},
		{"web_search", true, `{"query":"go generics"}`, risk.Low},
		{"web_search", true, `{"query":"` + long + `"}`, risk.Medium},
		{"create_pr", false, `{"repo_name":"a/b"}`, risk.Medium},
		{"create_mr", false, `{}`, risk.Medium},
		{"create_bitbucket_pr", false, `{}`, risk.Medium},
		{"create_gitea_pr", false, `{}`, risk.Medium},
		{"comment_on_issue", false, `{"number":1}`, risk.Medium},
		{"read_issue", true, `{"number":1}`, risk.Low},
		{"read_issue", true, `{"number":1,"repo_name":"a/b"}`, risk.Medium},
		{"read_issue", true, `[]`, risk.Unknown},
		{"their-tool", false, `{}`, risk.Unknown},
		{"their-tool", true, `{}`, risk.Medium},
	} {
		got, reason := tool.Rate(c.name, c.readOnly, json.RawMessage(c.args))
		if got != c.want || !strings.HasSuffix(reason, ".") {
			t.Errorf("%s %s: %v %q, want %v", c.name, c.args, got, reason, c.want)
		}
	}
}

func FuzzRate(f *testing.F) {
	for _, name := range []string{"execute_bash", "browser", "str_replace_editor", "fetch", "x"} {
		f.Add(name, `{"command":"ls","code":"goto('http://localhost')","path":"/a","url":"localhost"}`)
	}
	f.Fuzz(func(t *testing.T, name, args string) {
		if _, reason := tool.Rate(name, false, json.RawMessage(args)); reason == "" {
			t.Fatal("no reason")
		}
		if p := tool.Pattern(name, json.RawMessage(args)); p != "" && !tool.Matches(p, name, json.RawMessage(args)) {
			t.Fatalf("%q does not allow what it was proposed for", p)
		}
	})
}

// A command means something else in another folder, in which an earlier call left the shell.
func TestRateIn(t *testing.T) {
	for _, c := range []struct {
		folder, command string
		want            risk.Rating
		elsewhere       bool
	}{
		{"", "make", risk.Low, false},
		{"web", "make test", risk.Low, false},
		{"web", "go test ../api", risk.Low, false},
		{"/tmp/x", "make", risk.Medium, true},
		{"/tmp/x", "go test ./...", risk.Medium, true},
		{"/tmp/x", "make -C /workspace", risk.Unknown, true},
		{"/etc", "echo x > passwd", risk.High, true},
		{"/home/me", "tee .bashrc", risk.High, true},
		{".git/hooks", "cp /workspace/a pre-commit", risk.High, true},
		{".git", "echo x > config", risk.High, true},
		{"/tmp/x", "cd /workspace && make", risk.Low, true},
	} {
		args, _ := json.Marshal(map[string]string{"command": c.command})
		if got, why := tool.RateIn(c.folder, "execute_bash", false, args); got != c.want {
			t.Errorf("in %q, %s is rated %v: %s", c.folder, c.command, got, why)
		}
		if got := tool.Place(c.folder, "execute_bash", args); (got != "") != c.elsewhere {
			t.Errorf("in %q, %s: %q", c.folder, c.command, got)
		}
	}
	args := json.RawMessage(`{"command":"create","path":"/workspace/a"}`)
	if got, _ := tool.RateIn("/etc", "str_replace_editor", false, args); got != risk.Medium || tool.Place("/etc", "str_replace_editor", args) != "" {
		t.Errorf("an edit, which has whole paths, is rated %v", got)
	}
}
