package httpapi

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"deckhand/client"
	"deckhand/internal/sandbox"
)

// refusedWith is the status of a client's error.
func refusedWith(err error) int {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// A file is read, changed and saved, and what somebody else saved is not lost.
func TestSaveFile(t *testing.T) {
	h := newSandboxRig(t)
	for _, state := range []string{"running", "stopped"} {
		id := h.stopped()
		if state == "running" {
			id, _ = h.begun()
		}
		save := func(name, content, etag string) (string, error) {
			return h.client.SaveFile(t.Context(), id, name, content, etag)
		}
		first, err := save("src/new file.txt", "one\n", "")
		if err != nil || h.content(id, "src/new file.txt") != "one\n" {
			t.Fatalf("%s: %v", state, err)
		}
		read, err := h.client.OpenFile(t.Context(), id, "/workspace/src/new file.txt")
		if err != nil || read.ETag != first || read.Code != "one\n" {
			t.Fatalf("%s: %+v %v, want %s", state, read, err, first)
		}
		if err := os.Chmod(h.path(id, "src/new file.txt"), 0o755); err != nil {
			t.Fatal(err)
		}
		second, err := save("src/new file.txt", "two\n", first)
		if err != nil || second == first || second != sandbox.Sum([]byte("two\n")) {
			t.Fatalf("%s: %s %v", state, second, err)
		}
		if info, err := os.Stat(h.path(id, "src/new file.txt")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v %v", state, info.Mode(), err)
		}
		for what, etag := range map[string]string{"an old one": first, "none": ""} {
			if _, err := save("src/new file.txt", "three\n", etag); refusedWith(err) != http.StatusConflict {
				t.Errorf("%s, %s: %v", state, what, err)
			}
		}
		if _, err := save("never/was.txt", "x", first); refusedWith(err) != http.StatusConflict {
			t.Errorf("%s: %v", state, err)
		}
		if got := h.content(id, "src/new file.txt"); got != "two\n" {
			t.Errorf("%s: %q", state, got)
		}
		if _, err := os.Stat(h.path(id, "never")); err == nil {
			t.Errorf("%s: a folder was made for nothing", state)
		}
	}
}

// Every way to show a file tells the same etag.
func TestEtags(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	for name, content := range map[string]string{"small.txt": "a\nb", "empty": "", "large.txt": strings.Repeat("täxt\n", 50_000), "picture.png": all256()} {
		if err := os.WriteFile(h.path(id, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := h.client.OpenFile(t.Context(), id, name)
		if err != nil || got.ETag != sandbox.Sum([]byte(content)) {
			t.Errorf("%s: %q %v", name, got.ETag, err)
		}
	}
}

// Nothing outside the workspace is written, whatever the path looks like.
func TestSaveFileStaysInside(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/kept", []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"file": outside + "/kept", "folder": outside, "loose": outside + "/new"} {
		if err := os.Symlink(to, h.path(id, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(h.path(id, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(path, etag string) answer {
		return h.do("PUT", "/api/conversations/"+id+"/file", `{"path":"`+path+`","content":"x","etag":`+etag+`}`)
	}
	for _, path := range []string{"../x", "/etc/x", "a/../../x", "file", "folder/x", "folder/kept", "loose", "dir", ".", "/workspace"} {
		for _, etag := range []string{"null", `"` + sandbox.Sum([]byte("kept")) + `"`} {
			if a := put(path, etag); a.status != 422 && a.status != 409 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	put("../x", "null").want(t, 422, `"body","path"`)
	put("ok", `"not an etag"`).want(t, 422, "etag")
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	h.rig.as("bob", "PUT", "/api/conversations/"+id+"/file", `{"path":"a","content":""}`).want(t, 404)
}
