package httpapi

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/httpapi/files"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
)

// all256 is every byte there is.
func all256() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// odd are names that a careless reader stumbles over.
var odd = []string{"a b", "line\nbreak", `"quoted"`, "it's", "tab\there", "caf\xe9", "café", "caf%E9", "100%", "%25", "-rf", "a;b|c&d", "$(x)", "back\\slash", "emoji😀", "\xff\xfe", " ", "..."}

func TestListFiles(t *testing.T) {
	h := newSandboxRig(t)
	fill := func(id string) {
		for _, f := range []string{"b.txt", "A.txt", "zeta/", "Beta/x", "alpha/y", ".git/config", ".DS_Store", "node_modules/m", "__pycache__/p", "lost+found/", ".vscode/s", "alpha/node_modules/x",
			"build/out.o", "alpha/skip.log", "alpha/keep.log", "top.log", ".env", "deep/er/est/file"} {
			h.put(id, f, "x")
		}
		h.put(id, ".gitignore", "*.log\n!keep.log\n/build/\n")
		h.link(id, "link", "alpha")
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		for folder, want := range map[string][]string{
			"":              {"alpha/", "Beta/", "deep/", "zeta/", ".env", ".gitignore", "A.txt", "b.txt", "link"},
			"/workspace":    {"alpha/", "Beta/", "deep/", "zeta/", ".env", ".gitignore", "A.txt", "b.txt", "link"},
			"alpha":         {"alpha/keep.log", "alpha/y"},
			"alpha/":        {"alpha/keep.log", "alpha/y"},
			"./alpha/../":   {"alpha/", "Beta/", "deep/", "zeta/", ".env", ".gitignore", "A.txt", "b.txt", "link"},
			"deep/er":       {"deep/er/est/"},
			"deep//er/est/": {"deep/er/est/file"},
			"zeta":          {},
			"build":         {},
			"link":          {"link/keep.log", "link/y"},
		} {
			got, err := h.client.ListFiles(t.Context(), id, folder)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q: %v %q, want %q", folder, err, got, want)
			}
		}
		_, err := h.client.ListFiles(t.Context(), id, "nothing")
		refused(t, err, 404, "not found in the workspace")
		_, err = h.client.ListFiles(t.Context(), id, "b.txt/x")
		refused(t, err, 404)
		_, err = h.client.ListFiles(t.Context(), id, "b.txt")
		refused(t, err, 422, "query.path", "not a folder")
		if a := h.do("GET", "/api/conversations/"+id+"/list-files", ""); !strings.HasPrefix(a.body, `["alpha/"`) {
			t.Errorf("without a path: %s", a.body)
		}
		if a := h.do("GET", "/api/conversations/"+id+"/list-files?path=zeta", ""); a.body != "[]" {
			t.Errorf("an empty folder: %s", a.body)
		}
	})
}

// Whatever a file is called, the name that the list gives finds it again.
func TestOddNames(t *testing.T) {
	h := newSandboxRig(t)
	fill := func(id string) {
		for i, name := range odd {
			h.put(id, name, fmt.Sprint("file ", i))
			h.put(id, "in/"+name+"/x", fmt.Sprint("below ", i))
		}
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		names, err := h.client.ListFiles(t.Context(), id, "")
		if err != nil || len(names) != len(odd)+1 {
			t.Fatalf("%v %q", err, names)
		}
		for i, name := range odd {
			spelled := api.EncodeName([]byte(name))
			if !slices.Contains(names, spelled) {
				t.Errorf("%q is not in the list %q", spelled, names)
			}
			if got, err := h.client.ReadFile(t.Context(), id, spelled); err != nil || got != fmt.Sprint("file ", i) {
				t.Errorf("%q: %v %q", spelled, err, got)
			}
			below, err := h.client.ListFiles(t.Context(), id, "in/"+spelled)
			if err != nil || len(below) != 1 || below[0] != "in/"+spelled+"/x" {
				t.Fatalf("%q: %v %q", spelled, err, below)
			}
			if got, err := h.client.ReadFile(t.Context(), id, below[0]); err != nil || got != fmt.Sprint("below ", i) {
				t.Errorf("%q: %v %q", below[0], err, got)
			}
			// Who knows the bytes can send them as they are.
			if !strings.Contains(name, "%") {
				if got, err := h.client.ReadFile(t.Context(), id, name); err != nil || got != fmt.Sprint("file ", i) {
					t.Errorf("%q: %v %q", name, err, got)
				}
			}
		}
	})
}

func TestSelectFile(t *testing.T) {
	h := newSandboxRig(t)
	const line = "line \"quoted\" \\ \x01\t😀 ü\n"
	large := strings.Repeat(line, files.MaxText/len(line))
	large += strings.Repeat("x", files.MaxText-len(large)) // as long as it may be
	fill := func(id string) {
		h.put(id, "empty", "")
		h.put(id, "empty.png", "")
		h.put(id, "text", "für\x00 <b>\u2028")
		h.put(id, "large", large)
		h.put(id, "larger", large+"x")
		h.put(id, "late", strings.Repeat("x", 1<<20)+"\xff")
		h.put(id, "torn", strings.Repeat("x", files.OneRead)+"\xf0\x9f")
		h.put(id, "torn-small", "x\xf0\x9f")
		h.put(id, "binary", all256())
		h.put(id, "raw\xff", all256())
		for _, ext := range []string{"png", "JPG", "pdf", "webm"} {
			h.put(id, "all."+ext, all256())
		}
		h.put(id, "page.svg", "<svg/>")
		h.put(id, "folder.png/", "")
		h.put(id, "huge.mp4", "")
		if err := os.Truncate(h.path(id, "huge.mp4"), files.MaxMedia+1); err != nil {
			t.Fatal(err)
		}
		h.link(id, "link.mp4", "huge.mp4")
		h.link(id, "link.png", "all.png")
		h.link(id, "dangling", "nowhere")
		h.put(id, "secret", "x")
		if err := syscall.Mkfifo(h.path(id, "pipe"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		read := func(file string) (string, error) { return h.client.ReadFile(t.Context(), id, file) }
		for file, want := range map[string]string{"empty": "", "text": "für\x00 <b>\u2028", "large": large, "page.svg": "<svg/>", "/workspace/text": "für\x00 <b>\u2028"} {
			if got, err := read(file); err != nil || got != want {
				t.Errorf("%s: %v, %d bytes, want %d", file, err, len(got), len(want))
			}
		}
		for file, kind := range map[string]string{"all.png": "image/png", "all.JPG": "image/jpeg", "all.pdf": "application/pdf", "all.webm": "video/webm", "link.png": "image/png"} {
			got, err := read(file)
			data, ok := strings.CutPrefix(got, "data:"+kind+";base64,")
			b, bad := base64.StdEncoding.DecodeString(data)
			if err != nil || !ok || bad != nil || string(b) != all256() {
				t.Errorf("%s: %v %.60q", file, err, got)
			}
		}
		if got, err := read("empty.png"); err != nil || got != "data:image/png;base64," {
			t.Errorf("%v %q", err, got)
		}
		for _, file := range []string{"binary", "late", "torn", "torn-small"} {
			_, err := read(file)
			refused(t, err, 415, "Unable to open binary file: "+file, api.CodeBinaryFile)
		}
		_, err := read("larger")
		refused(t, err, 413, "10 MiB")
		_, err = read("huge.mp4")
		refused(t, err, 413, "50 MiB")
		_, err = read("link.mp4")
		refused(t, err, 413, "50 MiB")
		for _, file := range []string{"folder.png", ".", "pipe"} {
			_, err := read(file)
			refused(t, err, 422, "query.file", "not a regular file")
		}
		for _, file := range []string{"nothing", "nothing.png", "text/x", "dangling"} {
			_, err := read(file)
			refused(t, err, 404)
		}
		a := h.do("HEAD", "/api/conversations/"+id+"/select-file?file=large", "")
		if a.status != 200 || a.body != "" {
			t.Errorf("HEAD: %d", a.status)
		}
		if a := h.do("GET", "/api/conversations/"+id+"/select-file?file=binary", ""); a.body != `{"error":"Unable to open binary file: binary","msg_id":"WORKSPACE$BINARY_FILE"}` {
			t.Errorf("%s", a.body)
		}
		h.do("GET", "/api/conversations/"+id+"/select-file", "").want(t, 422, `"file"`, "required")
		h.do("GET", "/api/conversations/"+id+"/select-file?file=raw%FF", "").want(t, 415, `binary file: raw%FF"`)
		for file, want := range map[string]string{"binary": `"status":415`, "larger": `"status":413`, "nothing": `"status":404`, "pipe": `"message":"The path is not a regular file."`, "text": `"etag":"`} {
			a := h.do("GET", "/api/conversations/"+id+"/select-file?unfit=told&file="+file, "").want(t, 200, want)
			if strings.Contains(a.body, `"unfit"`) != (file != "text") {
				t.Errorf("%s: %.100s", file, a.body)
			}
		}
	})
}

func TestGetFile(t *testing.T) {
	h := newSandboxRig(t)
	large := strings.Repeat(all256(), (files.MaxText>>8)+1)
	fill := func(id string) {
		h.put(id, "empty", "")
		h.put(id, "page.html", "<script>1</script>")
		h.put(id, "für \"x\".bin", large)
		h.put(id, "folder/", "")
		h.link(id, "out", "/etc/passwd")
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		get := func(file string) answer {
			return h.do("GET", "/api/conversations/"+id+"/file?path="+url.QueryEscape(file), "")
		}
		for file, want := range map[string]string{"empty": "", "page.html": "<script>1</script>", "für \"x\".bin": large} {
			a := get(file)
			if a.status != 200 || a.body != want || a.header.Get("Content-Type") != "application/octet-stream" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d, %d bytes, want %d; %v", file, a.status, len(a.body), len(want), a.header)
			}
			how, given, err := mime.ParseMediaType(a.header.Get("Content-Disposition"))
			if err != nil || how != "attachment" || given["filename"] != file {
				t.Errorf("%s: %s %v %v", file, how, given, err)
			}
		}
		get("nothing").want(t, 404)
		get("folder").want(t, 422, "not a regular file")
		get("out").want(t, 422, "outside the workspace")
		get("../x").want(t, 422, "outside the workspace")
	})
}

func TestZip(t *testing.T) {
	h := newSandboxRig(t)
	content := map[string]string{"all": all256(), "large": strings.Repeat(all256(), 1<<12), "empty": ""}
	for i, name := range odd {
		content["dir/"+name] = fmt.Sprint(i)
	}
	fill := func(id string) {
		for name, c := range content {
			h.put(id, name, c)
		}
		h.link(id, "link", "/etc/passwd")
		h.put(id, "hollow/", "")
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		var b bytes.Buffer
		if err := h.client.Zip(t.Context(), id, &b); err != nil {
			t.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, f := range z.File {
			if strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, "..") && !strings.Contains(f.Name, "...") {
				t.Errorf("%q in the archive", f.Name)
			}
			if f.Mode()&os.ModeSymlink != 0 {
				if f.Name != "link" {
					t.Errorf("link %q", f.Name)
				}
				continue
			}
			if f.FileInfo().IsDir() {
				continue
			}
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			c, err := io.ReadAll(in)
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			found[f.Name] = string(c)
		}
		for name, want := range content {
			if got, ok := found[name]; !ok || got != want {
				t.Errorf("%q: %t, %d bytes, want %d", name, ok, len(got), len(want))
			}
		}
		a := h.do("GET", "/api/conversations/"+id+"/zip-directory", "").want(t, 200)
		if a.header.Get("Content-Type") != "application/zip" || !strings.Contains(a.header.Get("Content-Disposition"), `filename="workspace.zip"`) {
			t.Errorf("%v", a.header)
		}
		if a := h.do("HEAD", "/api/conversations/"+id+"/zip-directory", ""); a.status != 200 || a.header.Get("Content-Type") != "application/zip" {
			t.Errorf("HEAD: %d %v", a.status, a.header)
		}
	})
}

// slowBody reads the beginning of an answer and lets the test do something before the rest.
func TestZipThatBreaksOff(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	h.put(id, "noise", "")
	noise := make([]byte, 1<<20)
	x := uint32(1)
	for i := range noise { // nothing that could be packed well
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	for i := range 64 {
		h.put(id, fmt.Sprint("noise", i), string(noise))
	}
	res, err := h.rig.client.Do(h.request("GET", "/api/conversations/"+id+"/zip-directory", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	// The sandbox is stopped in the middle.
	if err := h.driver.Stop(t.Context(), sandbox.Handle{Driver: host.Name, ID: id}); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("%d bytes look like a whole archive", n)
	}
}

// Nothing outside the workspace can be read, by whatever way it is asked for.
func TestTraversal(t *testing.T) {
	h := newSandboxRig(t)
	fill := func(id string) {
		h.put(id, "inside/file", "inside")
		h.link(id, "out", "/etc")
		h.link(id, "passwd", "/etc/passwd")
		h.link(id, "up", "../../..")
		h.link(id, "inside/chain", "../out")
		h.link(id, "loop", "loop")
		h.link(id, "proc", "/proc/self/root/etc/passwd")
		if err := os.WriteFile(h.dir+"/outside.txt", []byte("private text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{"..", "../", "../..", "../../outside.txt", "inside/../..", "inside/../../x", "/", "/etc", "/etc/passwd", "//etc/passwd", "/workspace/..", "/workspace/../etc/passwd", "/workspacex", "/workspace2/x", "./../x",
		"out", "out/passwd", "passwd", "up", "up/outside.txt", "inside/chain", "inside/chain/passwd", "proc", "out/../../etc/passwd"}
	missing := []string{"%2e%2e", "%2e%2e/%2e%2e", "..%2f..", "..\\..\\x", "%252e%252e", "~", "~root", "file:///etc/passwd", "loop/x", "inside/file/../../nothing"}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		for _, op := range []string{"list-files?path=", "select-file?file=", "git/diff?path="} {
			for _, p := range append(slices.Clone(paths), missing...) {
				a := h.do("GET", "/api/conversations/"+id+"/"+op+url.QueryEscape(p), "")
				if a.status < 400 || a.status >= 500 || strings.Contains(a.body, "root:") || strings.Contains(a.body, "private text") || strings.Contains(a.body, h.dir) {
					t.Errorf("%s%q: %d %s", op, p, a.status, a.body)
				}
				if slices.Contains(paths, p) && op != "git/diff?path=" && !strings.Contains(a.body, "outside the workspace") {
					t.Errorf("%s%q: %d %s", op, p, a.status, a.body)
				}
			}
			a := h.do("GET", "/api/conversations/"+id+"/"+op+"a%00b", "").want(t, 422, "NUL")
			if !strings.Contains(a.body, "query") {
				t.Errorf("%s", a.body)
			}
			h.do("GET", "/api/conversations/"+id+"/"+op+strings.Repeat("a", 12289), "").want(t, 422, "at most")
			h.do("GET", "/api/conversations/"+id+"/"+op+strings.Repeat("a/", 6000)+"a", "").want(t, 422)
		}
	})
}

func TestGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	h := newSandboxRig(t)
	fill := func(id string) {
		run := func(args ...string) {
			t.Helper()
			cmd := exec.Command(git, append([]string{"-C", h.path(id, ""), "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		run("init", "-q", "-b", "main")
		for i, name := range odd {
			h.put(id, "old/"+name, fmt.Sprint(i))
		}
		h.put(id, "gone", "was here\n")
		h.put(id, "changed", "before\n")
		run("add", "-A")
		run("commit", "-q", "-m", "x")
		run("update-ref", "refs/remotes/origin/main", "HEAD")
		for i, name := range odd {
			h.put(id, "old/"+name, fmt.Sprint("new ", i))
			h.put(id, "new/"+name, fmt.Sprint("new ", i))
		}
		h.put(id, "changed", "after\n")
		h.put(id, "binary", all256())
		h.put(id, "large", strings.Repeat("x", 1<<21))
		if err := os.Remove(h.path(id, "gone")); err != nil {
			t.Fatal(err)
		}
	}
	h.both(t, fill, func(t *testing.T, h *sandboxRig, id string) {
		changes, err := h.client.Changes(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range changes {
			got[c.Path] = c.Status
		}
		want := map[string]string{"gone": "D", "changed": "M", "binary": "A", "large": "A"}
		for _, name := range odd {
			want["old/"+api.EncodeName([]byte(name))] = "M"
			want["new/"+api.EncodeName([]byte(name))] = "A"
		}
		for name, status := range want {
			if got[name] != status {
				t.Errorf("%q is %q, want %q", name, got[name], status)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d changes, want %d: %v", len(got), len(want), got)
		}
		for name := range want {
			if name == "binary" || name == "large" {
				continue
			}
			d, err := h.client.Diff(t.Context(), id, name)
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			if (d.Original == nil || *d.Original == "") != (want[name] == "A") || (d.Modified == nil) != (want[name] == "D") {
				t.Errorf("%q %s: %v", name, want[name], d)
			}
		}
		d, err := h.client.Diff(t.Context(), id, "changed")
		if err != nil || d.Original == nil || *d.Original != "before\n" || d.Modified == nil || *d.Modified != "after\n" {
			t.Errorf("%v %v", err, d)
		}
		_, err = h.client.Diff(t.Context(), id, "binary")
		refused(t, err, 415)
		_, err = h.client.Diff(t.Context(), id, "large")
		refused(t, err, 413)
		h.do("GET", "/api/conversations/"+id+"/git/diff?unfit=told&path=binary", "").want(t, 200, `"unfit":{"status":415,`)
	})
	t.Run("no repository", func(t *testing.T) {
		h.both(t, func(id string) { h.put(id, "x", "x") }, func(t *testing.T, h *sandboxRig, id string) {
			a := h.do("GET", "/api/conversations/"+id+"/git/changes", "").want(t, 404)
			if !strings.Contains(a.body, `{"error":"Not a git repository",`) {
				t.Errorf("%s", a.body)
			}
		})
	})
}

// operations is every look into a workspace.
func operations(c *client.Client) map[string]func(ctx context.Context, id string) error {
	return map[string]func(ctx context.Context, id string) error{
		"list":    func(ctx context.Context, id string) error { _, err := c.ListFiles(ctx, id, ""); return err },
		"read":    func(ctx context.Context, id string) error { _, err := c.ReadFile(ctx, id, "a"); return err },
		"zip":     func(ctx context.Context, id string) error { return c.Zip(ctx, id, io.Discard) },
		"changes": func(ctx context.Context, id string) error { _, err := c.Changes(ctx, id); return err },
		"diff":    func(ctx context.Context, id string) error { _, err := c.Diff(ctx, id, "a"); return err },
	}
}

// using is everything else that can be done with one.
func using(c *client.Client) map[string]func(ctx context.Context, id string) error {
	return map[string]func(ctx context.Context, id string) error{
		"upload": func(ctx context.Context, id string) error {
			_, err := c.Upload(ctx, id, "", client.Upload{Name: "a", Data: strings.NewReader("x")})
			return err
		},
		"terminal": func(ctx context.Context, id string) error {
			term, err := c.Terminal(ctx, id, "", api.TerminalSize{})
			if err == nil {
				err = term.Close()
			}
			return err
		},
		"ports":      func(ctx context.Context, id string) error { _, err := c.Ports(ctx, id); return err },
		"config":     func(ctx context.Context, id string) error { _, err := c.RuntimeConfig(ctx, id); return err },
		"egress":     func(ctx context.Context, id string) error { _, err := c.Egress(ctx, id, nil); return err },
		"set egress": func(ctx context.Context, id string) error { _, err := c.SetEgress(ctx, id, "off"); return err },
	}
}

// Somebody else's conversation is not there, whatever is asked of it.
func TestOthersWorkspace(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	h.put(id, "a", "secret")
	bob := h.as("bob")
	defer bob.HTTP.CloseIdleConnections()
	for _, ops := range []map[string]func(context.Context, string) error{operations(bob), using(bob)} {
		for name, op := range ops {
			for _, which := range []string{id, "unknown"} {
				t.Run(name+" "+which[:7], func(t *testing.T) {
					refused(t, op(t.Context(), which), 404, "Conversation not found", api.CodeConversationNotFound)
				})
			}
		}
	}
	if entries, err := os.ReadDir(h.path(id, "")); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", err, entries)
	}
}

// Before there is a workspace, everything that looks says so, in the words that older clients know.
func TestNoWorkspaceYet(t *testing.T) {
	h := newSandboxRig(t)
	id := h.create(`{}`)
	for name, op := range operations(h.client) {
		t.Run(name, func(t *testing.T) {
			refused(t, op(t.Context(), id), 404, "Runtime not yet initialized", api.CodeNoWorkspace)
		})
	}
	if a := h.do("GET", "/api/conversations/"+id+"/git/changes?absent=empty", "").want(t, 200, "[]"); a.header.Get("X-Absent") != "workspace" {
		t.Errorf("%v", a.header)
	}
	plain := h.stopped()
	h.put(plain, "a", "no repository")
	h.do("GET", "/api/conversations/"+plain+"/git/changes", "").want(t, 404)
	if a := h.do("GET", "/api/conversations/"+plain+"/git/changes?absent=empty", "").want(t, 200, "[]"); a.header.Get("X-Absent") != "repository" {
		t.Errorf("%v", a.header)
	}
	h.do("GET", "/api/conversations/nobodys/git/changes?absent=empty", "").want(t, 404)
	h.do("GET", "/api/conversations/"+id+"/git/changes?absent=maybe", "").want(t, 422)
	if a := h.do("GET", "/api/conversations/"+id+"/list-files", ""); !strings.HasPrefix(a.body, `{"error":"Runtime not yet initialized"`) {
		t.Errorf("%s", a.body)
	}
	if ports, err := h.client.Ports(t.Context(), id); err != nil || ports == nil || len(ports) != 0 {
		t.Errorf("%v %v", ports, err)
	}
	if c, err := h.client.RuntimeConfig(t.Context(), id); err != nil || c.RuntimeID != nil || c.SessionID != id {
		t.Errorf("%+v %v", c, err)
	}
	h.asleep(id)

	bare := newRig(t) // a server without sandboxes
	bare.settle("ada")
	id = bare.create(`{}`)
	c := client.New(bare.base, bare.keys["ada"])
	defer c.HTTP.CloseIdleConnections()
	for _, ops := range []map[string]func(context.Context, string) error{operations(c), using(c)} {
		for name, op := range ops {
			t.Run("bare "+name, func(t *testing.T) {
				refused(t, op(t.Context(), id), 404, "Runtime not yet initialized", api.CodeNoWorkspace)
			})
		}
	}
}

// A sandbox that cannot be had is said with its reason.
func TestNoSandbox(t *testing.T) {
	s := &specs{}
	s.set(sandbox.Spec{Image: "example/image"})
	h := newSandboxRigWith(t, func(d *host.Driver) sandbox.Driver { return d }, s)
	id := h.create(`{}`)
	for _, name := range []string{"upload", "terminal"} {
		refused(t, using(h.client)[name](t.Context(), id), 503, "cannot run container images", api.CodeSandbox)
	}
	if strings.Contains(h.logs.String(), `"status":500`) {
		t.Error("a 500")
	}
}

// A workspace that lies elsewhere can be read while its sandbox runs, and not after.
func TestUnseen(t *testing.T) {
	h := newSandboxRigWith(t, func(d *host.Driver) sandbox.Driver { return struct{ sandbox.Driver }{d} }, &specs{})
	id, box := h.begun()
	h.put(id, "a", "text")
	if got, err := h.client.ReadFile(t.Context(), id, "a"); err != nil || got != "text" {
		t.Errorf("%v %q", err, got)
	}
	h.stop(id, box)
	for name, op := range operations(h.client) {
		t.Run(name, func(t *testing.T) {
			refused(t, op(t.Context(), id), 409, "Start the conversation", api.CodeWorkspaceStopped)
		})
	}
	h.asleep(id)
}

// What is deleted is gone, with its files.
func TestDeleteTakesTheWorkspace(t *testing.T) {
	h := newSandboxRig(t)
	id, box := h.begun()
	h.put(id, "a", "text")
	if err := h.client.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	<-box.Done()
	for name, op := range operations(h.client) {
		t.Run(name, func(t *testing.T) { refused(t, op(t.Context(), id), 404, "Conversation not found") })
	}
	stopped := h.stopped()
	if err := h.client.Delete(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		gone := string(<-h.forgotten)
		if _, err := os.Stat(h.path(gone, "")); !errors.Is(err, os.ErrNotExist) || gone != id && gone != stopped {
			t.Errorf("%s: %v", gone, err)
		}
	}
}

func TestPorts(t *testing.T) {
	h := newSandboxRig(t)
	stopped := h.stopped()
	id, _ := h.begun()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // these sandboxes share the machine's network
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ports, err := h.client.Ports(t.Context(), id)
	if err != nil || !slices.Contains(ports, api.Port{Port: listener.Addr().(*net.TCPAddr).Port}) {
		t.Errorf("%v %v", err, ports)
	}
	if a := h.do("GET", "/api/conversations/"+stopped+"/ports", ""); a.status != http.StatusOK || a.body != "[]" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
