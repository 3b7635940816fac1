package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

func TestDefect21BinaryUploadsCorrupted(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	for i, content := range []string{all256(), "\xff\xfe\x00", strings.Repeat("\x80", 1<<16)} {
		name := fmt.Sprintf("file%d.bin", i)
		got, err := h.client.Upload(t.Context(), id, "", up(name, content))
		if err != nil || len(got.UploadedFiles) != 1 || len(got.SkippedFiles) != 0 {
			t.Fatalf("%+v %v", got, err)
		}
		if h.content(id, name) != content {
			t.Errorf("%s is not what was sent", name)
		}
	}
	// A second file of the same name does not replace the first unsaid.
	again, err := h.client.Upload(t.Context(), id, "", up("file0.bin", "another"))
	if err != nil || len(again.UploadedFiles) != 1 {
		t.Fatalf("%+v %v", again, err)
	}
	if text, err := h.client.ReadFile(t.Context(), id, again.UploadedFiles[0]); err != nil || text != "another" || h.content(id, "file0.bin") != all256() {
		t.Errorf("what the answer names is %q, %v", text, err)
	}
}

func TestDefect22GitChangesBreaksOnBlanks(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", h.path(id, ""), "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q", "-b", "main")
	names := []string{"two words", `"quoted"`, "line\nbreak", "tab\there", "grün 😀", " leading", "a -> b"}
	for _, name := range names {
		h.put(id, "old/"+name, "before")
		h.put(id, "gone/"+name, "before")
	}
	git("add", "-A")
	git("commit", "-qm", "x")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	git("rm", "-rq", "gone")
	want := map[string]string{}
	for _, name := range names {
		h.put(id, "old/"+name, "after")
		h.put(id, "new/"+name, "after")
		shown := api.EncodeName([]byte(name))
		want["old/"+shown], want["new/"+shown], want["gone/"+shown] = "M", "A", "D"
	}
	changes := decoded[[]api.GitChange](t, h.do("GET", toCreate+"/"+id+"/git/changes", "").want(t, 200))
	got := map[string]string{}
	for _, c := range changes {
		got[c.Path] = c.Status
	}
	if !maps.Equal(got, want) || len(changes) != len(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	for name, status := range want {
		d, err := h.client.Diff(t.Context(), id, name)
		if err != nil || (d.Modified != nil && *d.Modified == "after") != (status != "D") || (d.Original != nil && *d.Original == "before") != (status != "A") {
			t.Errorf("%q %s: %v %v", name, status, d, err)
		}
	}
}

// perhaps is a query that every route can live with, so that it gets as far as
// it can.
const perhaps = "?file=a&path=a&event_id=1&limit=5"

// below is a route's address for a conversation.
func below(path, id string) string {
	path = strings.ReplaceAll(path, "{conversation_id}", id)
	for _, name := range rest.Wildcards(path) {
		path = strings.ReplaceAll(path, "{"+name+"}", "1")
	}
	return path + perhaps
}

// look makes a request and leaves when the answer begins, for some never end.
func (r *rig) look(method, path string, header ...string) int {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	req := r.request(method, path, http.NoBody, header...).WithContext(ctx)
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestDefect29GETsStartContainers(t *testing.T) {
	h := newSandboxRig(t)
	id := h.stopped()
	h.put(id, "a", "x")
	events := len(h.events(id))
	looked := 0
	for _, rt := range new(Handler).table() {
		if rt.Method != http.MethodGet || !strings.Contains(rt.Path, "{conversation_id}") {
			continue
		}
		path := below(rt.Path, id)
		if status := h.look("GET", path); status >= 500 && status != http.StatusNotImplemented {
			t.Errorf("%s: %d", rt.Path, status)
		}
		looked++
		if n := h.keeper.Running(); n != 0 {
			t.Fatalf("%s: %d sandboxes run", rt.Path, n)
		}
	}
	h.asleep(id)
	c := decoded[api.Conversation](t, h.do("GET", toCreate+"/"+id, "").want(t, 200))
	if now := len(h.events(id)); c.Status != "STOPPED" || now != events || looked < 15 {
		t.Errorf("after %d looks it is %s with %d events, which were %d: %v", looked, c.Status, now, events, h.events(id))
	}
}

// takes is what each route below a conversation accepts; others need none.
var takes = map[string]string{
	"restoreConversation": `{"event_id":1}`,
	"patchConversation":   `{"title":"mine"}`,
	"startConversation":   `{}`,
	"postEvent":           `{"action":"message","args":{"content":"hello"}}`,
	"postMessage":         `{"message":"hello"}`,
	"postApproval":        `{"decision":"accept"}`,
	"setEgress":           `{"mode":"open"}`,
	"submitFeedback":      `{"polarity":"positive"}`,
	"saveFile":            `{"path":"a","content":"mine"}`,
	"setOverrides":        `{"llm_model":"acme/priced"}`,
	"setTrust":            `{"trusted":true}`,
	"forkConversation":    `{}`,
	"startAttempts":       `{"task":"x","attempts":[{},{}]}`,
	"muteConversation":    `{"muted":true}`,
	"gitRevert":           `{"range":"head","files":[{"path":"a","etag":"` + strings.Repeat("0", 64) + `"}]}`,
	"gitStage":            `{"paths":["a"],"staged":true}`,
	"gitDraftMessage":     `{}`,
	"gitCommit":           `{"message":"Mine"}`,
	"gitPush":             `{"branch":"mine"}`,
	"openPullRequest":     `{"title":"Mine","source_branch":"mine","target_branch":"main"}`,
	"runCommand":          `{"name":"review"}`,
}

// knock sends a request with a body from an address of its own, since many wrong
// keys from one are answered in another way.
func (r *rig) knock(from, method, path, body string, header ...string) answer {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Host, req.RemoteAddr = "localhost", from
	setHeader(req, header)
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	return answer{w.Code, w.Body.String(), w.Header()}
}

// A client without a key, with a wrong one or another user's has no access to any route
// of a conversation, and nothing is started, said or changed by trying.
func TestStrangersGetNowhere(t *testing.T) {
	h := newSandboxRig(t)
	id := h.stopped()
	h.put(id, "a", "secret")
	before := fmt.Sprint(h.events(id))
	for i, rt := range new(Handler).table() {
		if !strings.Contains(rt.Path, "{conversation_id}") || rt.Public || rt.Admin { // the page has nothing of a conversation's in it, and what is for admins is for any conversation
			continue
		}
		path := below(rt.Path, id)
		ask := func(n int, key string) answer {
			body := takes[rt.ID]
			header := []string{"X-Session-API-Key", key}
			if rt.Upload {
				body, header = "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n", append(header, "Content-Type", "multipart/form-data; boundary=b")
			} else if body != "" {
				header = append(header, "Content-Type", "application/json")
			}
			return h.knock(fmt.Sprintf("10.1.%d.%d:1234", i, n), rt.Method, path, body, header...)
		}
		for n, c := range []struct {
			who, key string
			status   int
		}{
			{"without a key", "", 401},
			{"with a wrong key", wrongKey, 401},
			{"as another user", h.keys["bob"], 404},
			{"as the admin", h.keys["admin"], 404},
		} {
			if a := ask(n, c.key); a.status != c.status {
				t.Errorf("%s %s %s: %d %.200s", rt.Method, rt.Path, c.who, a.status, a.body)
			}
		}
	}
	if after := fmt.Sprint(h.events(id)); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if n := h.keeper.Running(); n != 0 {
		t.Errorf("%d sandboxes run", n)
	}
	h.asleep(id)
	if h.content(id, "a") != "secret" || len(h.names(id)) != 1 {
		t.Errorf("the workspace is %v", h.names(id))
	}
}
