package tool_test

import (
	"encoding/json"
	"errors"
	"testing"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	_ "deckhand/internal/tool/toolbox" // lists the tools
)

func bash(command string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"command": command})
	return b
}

func TestPatternProposed(t *testing.T) {
	edit := func(path string) json.RawMessage {
		b, _ := json.Marshal(map[string]string{"command": "create", "path": path, "file_text": ""})
		return b
	}
	for _, c := range []struct {
		name string
		args json.RawMessage
		want string
	}{
		{"execute_bash", bash("git status --short"), "execute_bash:git status*"},
		{"execute_bash", bash("git commit -m 'a b'"), "execute_bash:git commit*"},
		{"execute_bash", bash("go test ./..."), "execute_bash:go test*"},
		{"execute_bash", bash("npm install"), "execute_bash:npm install*"},
		{"execute_bash", bash("python3 app.py --port 3"), "execute_bash:python3 app.py --port 3"},
		{"execute_bash", bash("golangci-lint run"), "execute_bash:golangci-lint run"},
		{"execute_bash", bash("uv run pytest -q"), "execute_bash:uv run pytest -q"},
		{"execute_bash", bash("docker run --rm alpine sh -c 'a b'"), ""},
		{"execute_bash", bash("touch 'a b'"), ""},
		{"execute_bash", bash("git push"), ""},
		{"execute_bash", bash("rm -rf x"), ""},
		{"execute_bash", bash("ls | cat"), ""},
		{"execute_bash", bash("ls > x"), ""},
		{"execute_bash", bash("git -C x status"), ""},
		{"execute_bash", bash("env ls"), ""},
		{"execute_bash", bash("$x"), ""},
		{"execute_bash", json.RawMessage(`{"command":"y","is_input":"true"}`), ""},
		{"execute_bash", json.RawMessage(`{"command":"ls","command":"id"}`), ""},
		{"str_replace_editor", edit("/workspace/app/main.go"), "str_replace_editor:/workspace/app/*"},
		{"str_replace_editor", edit("/workspace/../etc/x"), ""},
		{"str_replace_editor", edit("/workspace/.git/hooks/x"), ""},
		{"str_replace_editor", edit("/top"), ""},
		{"str_replace_editor", edit("rel/x"), ""},
		{"fetch", json.RawMessage(`{"url":"https://example.org/"}`), "fetch"},
		{"their-tool", json.RawMessage(`{}`), "their-tool"},
		{"bad:name", json.RawMessage(`{}`), ""},
	} {
		if got := tool.Pattern(c.name, c.args); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.args, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, command string
		want             bool
	}{
		{"execute_bash:git status*", "git status", true},
		{"execute_bash:git status*", "git status --short", true},
		{"execute_bash:git status*", "git  status  -s", true},
		{"execute_bash:git status *", "git status -s", true},
		{"execute_bash:git status", "git status", true},
		{"execute_bash:git commit*", `git commit -m "two words"`, true},
		{"execute_bash:go test*", "go test ./...", true},
		{"execute_bash:git status", "git status -s", false},
		{"execute_bash:git status*", "git statusx", false},
		{"execute_bash:git status*", "git stash", false},
		{"execute_bash:git status*", "git", false},
		{"execute_bash:git status*", "git status; id", false},
		{"execute_bash:git status*", "git status && id", false},
		{"execute_bash:git status*", "git status || id", false},
		{"execute_bash:git status*", "git status | sh", false},
		{"execute_bash:git status*", "git status |& cat", false},
		{"execute_bash:git status*", "git status &", false},
		{"execute_bash:git status*", "git status;", false},
		{"execute_bash:git status*", "! git status", false},
		{"execute_bash:git status*", "(git status)", false},
		{"execute_bash:git status*", "{ git status; }", false},
		{"execute_bash:git status*", "time git status", false},
		{"execute_bash:git status*", "git status > x", false},
		{"execute_bash:git status*", "git status 2>&1", false},
		{"execute_bash:git status*", "git status < x", false},
		{"execute_bash:git status*", "git status $(id)", false},
		{"execute_bash:git status*", "git status `id`", false},
		{"execute_bash:git status*", "git status <(id)", false},
		{"execute_bash:git status*", "git status $x", false},
		{"execute_bash:git status*", "git status \"$x\"", false},
		{"execute_bash:git status*", "git status *", false},
		{"execute_bash:git status*", "git status {a,b}", false},
		{"execute_bash:git status*", "git status ~", false},
		{"execute_bash:git status*", "A=b git status", false},
		{"execute_bash:git status*", "PATH=/tmp git status", false},
		{"execute_bash:git status*", "env git status", false},
		{"execute_bash:git status*", "command git status", false},
		{"execute_bash:git status*", "./git status", false},
		{"execute_bash:git status*", "/usr/bin/git status", false},
		{"execute_bash:git status*", "git -c core.fsmonitor=x status", false},
		{"execute_bash:git status*", "git status\nid", false},
		{"execute_bash:git status*", "git status \\\n -s", false},
		{"execute_bash:git status*", "git status '\n'", false},
		{"execute_bash:git status*", "git status # x", false},
		{"execute_bash:git status*", "git status\r", false},
		{"execute_bash:git status*", "git\u00a0status", false},
		{"execute_bash:git status*", "git() { :; }", false},
		{"execute_bash:git diff*", "git diff --output=main.go", false},
		{"execute_bash:git diff*", "git diff --ext-diff", false},
		{"execute_bash:git log*", "git log --outp=x", false},
		{"execute_bash:go test*", "go test -exec ./evil ./...", false},
		{"execute_bash:make test*", "make test SHELL=/tmp/x", false},
		{"execute_bash:make test*", "make test GO='rm -rf x'", false},
		{"execute_bash:make test*", "make test -f /tmp/evil.mk", false},
		{"execute_bash:npm test*", "npm test --script-shell=/tmp/evil", false},
		{"execute_bash:uv run pytest", "uv run pytest", true},
		{"execute_bash:uv run pytest*", "uv run pytest -q", false},
		{"execute_bash:uv*", "uv run sh -c id", false},
		{"execute_bash:docker*", "docker exec db sh -c id", false},
		{"execute_bash:npm exec*", "npm exec -c id", false},
		{"execute_bash:npx*", "npx anything", false},
		{"execute_bash:git stash*", "git stash clear", false},
		{"execute_bash:git diff*", "git diff --no-index /dev/null .env", false},
		{"execute_bash:find .*", "find . -delete", false},
		{"execute_bash:find .*", "find . -exec id ;", false},
		{"execute_bash:sort*", "sort -o x y", false},
		{"execute_bash:touch*", "touch a.txt", true},
		{"execute_bash:touch*", "touch ~/.bashrc", false},
		{"execute_bash:touch*", "touch .git/hooks/x", false},
		{"execute_bash:rm -rf*", "rm -rf /", false},
		{"fetch", "git status", false},
	} {
		if got := tool.Matches(c.pattern, "execute_bash", bash(c.command)); got != c.want {
			t.Errorf("%q allows %q: %v", c.pattern, c.command, got)
		}
	}
	for _, c := range []struct {
		pattern, name, args string
		want                bool
	}{
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs/a.md"}`, true},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs/b/a.md"}`, true},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs/../a.md"}`, false},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs2/a.md"}`, false},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs/.git/hooks/x"}`, false},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs//x"}`, false},
		{"str_replace_editor:/workspace/docs/*", "edit_file", `{"path":"/workspace/docs/a"}`, false},
		{"str_replace_editor:/workspace/docs/*", "str_replace_editor", `{"command":"create","path":"/workspace/docs/a","PATH":"/etc/x"}`, false},
		{"str_replace_editor", "str_replace_editor", `{"command":"create","path":"/workspace/a"}`, true},
		{"str_replace_editor", "str_replace_editor", `{"command":"create","path":"/etc/passwd"}`, false},
		{"execute_bash:git status*", "execute_bash", `{"command":"git status","is_input":"true"}`, false},
		{"execute_bash:git status*", "execute_bash", `{"command":"git status","is_input":true}`, false},
		{"execute_bash:git status*", "execute_bash", `{"command":"git status","Command":"id"}`, false},
		{"execute_bash:git status*", "execute_bash", `{"command":["git status"]}`, false},
		{"execute_bash:git status*", "execute_bash", `nonsense`, false},
		{"their-tool", "their-tool", `{"x":1}`, true},
		{"their-tool", "other-tool", `{"x":1}`, false},
		{"browser", "browser", `{"code":"click('1')"}`, true},
		{"browser", "browser", `{"code":"upload_file('1','/workspace/x')"}`, false},
	} {
		if got := tool.Matches(c.pattern, c.name, json.RawMessage(c.args)); got != c.want {
			t.Errorf("%q allows %s %s: %v", c.pattern, c.name, c.args, got)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for _, good := range []string{"fetch", "execute_bash:git status*", "execute_bash:git status *", "execute_bash:make", "str_replace_editor:/workspace/*", "their.tool-x"} {
		if err := tool.CheckPattern(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, wrong := range []string{"", "*", ":x", "execute_bash", "execute_bash:", "execute_bash:*", "execute_bash: *", "execute_bash:git  status", "execute_bash:ls|sh*", "execute_bash:ls;id", "execute_bash:$x",
		"execute_bash:git sta*us", "execute_bash:sudo *", "execute_bash:env *", "execute_bash:xargs ls", "execute_bash:bash x.sh", "execute_bash:sh -c*", "execute_bash:eval x", "execute_bash:rm -rf*", "execute_bash:git push*",
		"execute_bash:python3 -c*", "execute_bash:A=b ls", "execute_bash:ls > x", "execute_bash:ls\nid", "execute_bash:./x*", "execute_bash:if*", "str_replace_editor:/*", "str_replace_editor:rel/*", "str_replace_editor:/a/../b/*", "str_replace_editor:/a",
		"str_replace_editor:/a*/*", "fetch:https://example.org/*", "bad name", "execute_bash:" + string(make([]byte, 600))} {
		var sentence *tool.PatternError
		if err := tool.CheckPattern(wrong); !errors.As(err, &sentence) || len(sentence.Message) < 20 {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Whatever a pattern allows is one command that is no worse than the pattern says.
func FuzzMatches(f *testing.F) {
	f.Add("execute_bash:git status*", "git status -s")
	f.Add("execute_bash:ls*", "ls; id")
	f.Fuzz(func(t *testing.T, pattern, command string) {
		if !tool.Matches(pattern, "execute_bash", bash(command)) {
			return
		}
		if r, _ := risk.Shell(command); r == risk.High || r == risk.Unknown {
			t.Fatalf("%q allows %q, which is %v", pattern, command, r)
		}
		for _, tail := range []string{"; id", " | id", " > x", " $(id)", "\nid", " &"} {
			if tool.Matches(pattern, "execute_bash", bash(command+tail)) {
				t.Fatalf("%q allows %q", pattern, command+tail)
			}
		}
	})
}
