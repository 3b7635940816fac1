package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/git"
)

func TestRepositoryMicroagents(t *testing.T) {
	hub := &place{files: map[string]string{
		"team/app:.openhands/microagents/repo.md": "Run make.", "team/app:.openhands/microagents/README.md": "x", "team/app:.openhands/microagents/deep/er/x.md": "x", "team/app:.openhands/microagents/notes.txt": "x",
		"team/app:.openhands/microagents/deep/er/too/far.md": "x", "team/app:.openhands/microagents/broken.md": "---\ntriggers: [\n---\nx",
		"team/app:.openhands/microagents/deploy.md": "---\nname: deploy\ntriggers:\n- ship it\n---\nHow to ship.", "team/app:.openhands/skills/pdf/SKILL.md": "x", "team/app:.cursorrules": "Use tabs.", "team/app:AGENTS.md": "x",
		"team/app:README.md": "x", "team/app:microagents/no.md": "x", "team/.openhands:microagents/org.md": "For all.", "team/plain:main.go": "x", "team/empty:": "",
	}}
	lab := &place{files: map[string]string{"a/b/c/d:.openhands/microagents/lab.md": "x", "a/openhands-config:microagents/org.md": "x", "a/.openhands:microagents/no.md": "x"}}
	_, with := newStreet(map[string]*place{"github": hub, "gitlab": lab})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab")
	list := func(repository string) string {
		t.Helper()
		var out []string
		for _, path := range []string{repository, url.PathEscape(repository)} {
			var names []string
			for _, m := range decoded[[]api.RepositoryMicroagent](t, r.do("GET", "/api/user/repository/"+path+"/microagents", "").want(t, 200)) {
				names = append(names, m.Name+"="+m.Path)
				if m.CreatedAt.IsZero() {
					t.Errorf("%+v", m)
				}
			}
			out = append(out, strings.Join(names, " "))
		}
		if out[0] != out[1] {
			t.Errorf("%s: escaped it gives %s, and not %s", repository, out[1], out[0])
		}
		return out[0]
	}
	for repository, want := range map[string]string{
		"team/app": "broken=.openhands/microagents/broken.md deep/er/x=.openhands/microagents/deep/er/x.md deploy=.openhands/microagents/deploy.md repo=.openhands/microagents/repo.md " +
			"pdf/SKILL=.openhands/skills/pdf/SKILL.md cursorrules=.cursorrules AGENTS=AGENTS.md",
		"team/.openhands": "org=microagents/org.md", "a/b/c/d": "lab=.openhands/microagents/lab.md", "a/openhands-config": "org=microagents/org.md", "a/.openhands": "", "team/plain": "", "team/empty": "",
	} {
		if got := list(repository); got != want {
			t.Errorf("%s: %s", repository, got)
		}
	}
	if a := r.do("GET", "/api/user/repository/team/plain/microagents", "").want(t, 200); a.body != "[]" {
		t.Errorf("%s", a.body)
	}
	r.do("GET", "/api/user/repository/team/none/microagents", "").want(t, 404, "Not found on")
	for _, bad := range []string{"x", "-a/b", "a/b c", "a%2F..%2Fb", "a/b;c"} {
		if a := r.do("GET", "/api/user/repository/"+url.PathEscape(bad)+"/microagents", ""); a.status != 422 || !strings.Contains(a.body, `["path","repository_name"]`) {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
	content := func(repository, file string) answer {
		return r.do("GET", "/api/user/repository/"+repository+"/microagents/content?file_path="+url.QueryEscape(file), "")
	}
	for file, want := range map[string]string{
		".openhands/microagents/deploy.md": `{"content":"How to ship.","path":".openhands/microagents/deploy.md","triggers":["ship it"],"git_provider":"github"}`,
		".cursorrules":                     `{"content":"Use tabs.","path":".cursorrules","triggers":[],"git_provider":"github"}`,
		".openhands/microagents/broken.md": `{"content":"---\ntriggers: [\n---\nx","path":".openhands/microagents/broken.md","triggers":[],"git_provider":"github"}`,
	} {
		if a := content("team/app", file).want(t, 200); a.body != want {
			t.Errorf("%s: %s", file, a.body)
		}
	}
	content("a/b/c/d", ".openhands/microagents/lab.md").want(t, 200, `"git_provider":"gitlab"`)
	content("team/app", "nothing.md").want(t, 404, "Not found on")
	for _, bad := range []string{"", "/etc/passwd", "../x", "a/../../x", ".", "a//b", `a\b`} {
		content("team/app", bad).want(t, 422, `["query","file_path"]`)
	}
	r.do("GET", "/api/user/repository/team/app/microagents/content", "").want(t, 422, `["query","file_path"]`)
	r.do("GET", "/api/user/repository/team/app/other", "").want(t, 404)
}

// A repository without end is not walked to its end.
func TestMicroagentsAreBounded(t *testing.T) {
	hub := &place{files: map[string]string{}}
	for i := range 100 {
		hub.files[fmt.Sprintf("team/app:.openhands/microagents/d%d/x.md", i)] = "x"
	}
	for i := range 2 * git.MaxAgentFiles {
		hub.files[fmt.Sprintf("team/many:.openhands/microagents/x%d.md", i)] = "x"
	}
	_, with := newStreet(map[string]*place{"github": hub})
	r := newRig(t, with)
	r.tokens("ada", "github")
	for repository, want := range map[string]int{"team/app": git.MaxAgentFolders - 1, "team/many": git.MaxAgentFiles} {
		if got := decoded[[]api.RepositoryMicroagent](t, r.do("GET", "/api/user/repository/"+repository+"/microagents", "").want(t, 200)); len(got) != want {
			t.Errorf("%s: %d", repository, len(got))
		}
	}
}

func TestMicroagentConversations(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{"create_microagent":{"repo":"team/app","git_provider":"github"}}`)
	r.create(`{"create_microagent":{"repo":"team/other","git_provider":"github"}}`)
	r.create(`{"repository":"team/app"}`)
	a := r.do("GET", "/api/microagent-management/conversations?selected_repository=team/app", "").want(t, 200)
	if got := decoded[api.ConversationPage](t, a); len(got.Results) != 1 || got.Results[0].ConversationID != id || got.NextPageID != nil {
		t.Errorf("%s", a.body)
	}
	r.do("GET", "/api/microagent-management/conversations", "").want(t, 422, "selected_repository")
}

// However a path is written, folding it changes how it is cut up and never what it says.
func FuzzFoldRepository(f *testing.F) {
	for _, s := range []string{"a/b/microagents", "a/b/microagents/content", "a%2Fb/microagents", "branches", "a/microagents/microagents", "a b/c%/microagents", "/microagents"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tail string) {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: "/api/user/repository/" + tail}}
		got := git.FoldRepository(r)
		if got.URL.Path != r.URL.Path {
			t.Errorf("%q became %q", r.URL.Path, got.URL.Path)
		}
		if got == r {
			return
		}
		back, err := url.PathUnescape(got.URL.EscapedPath())
		if err != nil || back != r.URL.Path || strings.Count(strings.TrimPrefix(got.URL.EscapedPath(), "/api/user/repository/"), "/") > 2 {
			t.Errorf("%q is written %q", r.URL.Path, got.URL.EscapedPath())
		}
	})
}
