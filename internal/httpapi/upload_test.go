package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/httpapi/files"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
)

func up(name, content string) client.Upload {
	return client.Upload{Name: name, Data: strings.NewReader(content)}
}

// content reads a file of a workspace.
func (h *sandboxRig) content(id, name string) string {
	h.t.Helper()
	b, err := os.ReadFile(h.path(id, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// names is what lies in the workspace.
func (h *sandboxRig) names(id string) []string {
	h.t.Helper()
	entries, err := os.ReadDir(h.path(id, ""))
	if err != nil {
		h.t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

func TestUpload(t *testing.T) {
	h := newSandboxRig(t)
	for _, state := range []string{"new", "running", "stopped"} {
		t.Run(state, func(t *testing.T) {
			mine, r := *h, *h.rig
			r.t, mine.rig = t, &r
			h := &mine
			var id string
			switch state {
			case "new":
				id = h.create(`{}`)
			case "running":
				id, _ = h.begun()
			case "stopped":
				id = h.stopped()
			}
			files := []client.Upload{up("all256.bin", all256()), up("large", strings.Repeat(all256(), 1<<13)), up("empty", "")}
			want := []string{"/workspace/all256.bin", "/workspace/large", "/workspace/empty"}
			for i, name := range odd {
				files = append(files, up(name, fmt.Sprint(i)))
				want = append(want, "/workspace/"+api.EncodeName([]byte(name)))
			}
			got, err := h.client.Upload(t.Context(), id, "", files...)
			if err != nil || !slices.Equal(got.UploadedFiles, want) || !slices.Equal(got.FileURLs, want) || got.SkippedFiles == nil || len(got.SkippedFiles) != 0 {
				t.Fatalf("%v %q, want %q", err, got, want)
			}
			if h.content(id, "all256.bin") != all256() || h.content(id, "large") != strings.Repeat(all256(), 1<<13) || h.content(id, "empty") != "" {
				t.Error("a file is not what was sent")
			}
			for i, name := range odd {
				if h.content(id, name) != fmt.Sprint(i) {
					t.Errorf("%q: %q", name, h.content(id, name))
				}
				// What the answer calls it is found under that name.
				if text, err := h.client.ReadFile(t.Context(), id, want[3+i]); err != nil || text != fmt.Sprint(i) {
					t.Errorf("%q: %v %q", want[3+i], err, text)
				}
			}
			if len(h.names(id)) != len(files) {
				t.Errorf("%q", h.names(id))
			}
		})
	}
}

// Uploads and saved files count towards the disk limit of the workspace.
func TestUploadBeyondTheDiskLimit(t *testing.T) {
	h := newSandboxRigWith(t, func(d *host.Driver) sandbox.Driver { return d }, &specs{spec: sandbox.Spec{Limits: sandbox.Limits{Disk: 4 << 20}}})
	for state, id := range map[string]string{"new": h.create(`{}`), "stopped": h.stopped()} {
		large := strings.Repeat("x", 3<<20)
		got, err := h.client.Upload(t.Context(), id, "", up("one", large), up("two", large), up("small", "x"))
		if err != nil || !slices.Equal(got.UploadedFiles, []string{"/workspace/one", "/workspace/small"}) || len(got.SkippedFiles) != 1 || !strings.Contains(got.SkippedFiles[0].Reason, "disk limit") {
			t.Errorf("%s: %v %+v", state, err, got)
		}
		if names := h.names(id); slices.Contains(names, "two") {
			t.Errorf("%s: a part of the file was kept: %q", state, names)
		}
		if _, err := h.client.SaveFile(t.Context(), id, "three", large, ""); err == nil || !strings.Contains(err.Error(), "disk limit") {
			t.Errorf("%s: saving gave %v", state, err)
		}
	}
}

// The sandbox of a stopped conversation runs for an upload, and no longer.
func TestUploadToStoppedEndsAgain(t *testing.T) {
	h := newSandboxRig(t)
	id := h.stopped()
	if _, err := h.client.Upload(t.Context(), id, "", up("a", "x")); err != nil {
		t.Fatal(err)
	}
	// Whether it still runs or not, it does not start again: this waits for its end.
	if box, err := h.driver.Attach(t.Context(), sandbox.Handle{ID: id}); err == nil {
		<-box.Done()
		box.Close()
	}
	if err := h.driver.Stop(t.Context(), sandbox.Handle{ID: id}); err != nil {
		t.Fatal(err)
	}
	if h.content(id, "a") != "x" {
		t.Error("the file is gone")
	}
	if c, err := h.client.Conversation(t.Context(), id); err != nil || c.Status != "STOPPED" {
		t.Errorf("%v %s", err, c.Status)
	}
}

func TestUploadNames(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	h.put(id, "taken.txt", "old")
	h.put(id, "folder/", "")
	h.link(id, "dangling", "/etc/passwd-not-there")
	long := strings.Repeat("ü", 125) + ".md" // 253 bytes
	h.put(id, long, "old")
	got, err := h.client.Upload(t.Context(), id, "",
		up("taken.txt", "1"), up("taken.txt", "2"), up("folder", "3"), up("dangling", "4"), up(".profile", "5"), up(".profile", "6"), up(long, "7"),
		up("../../up.txt", "8"), up("/etc/absolute", "9"), up("a/b/c.txt", "10"), up(`C:\fakepath\win.txt`, "11"), up("noext", "12"), up("noext", "13"),
		up("", "x"), up("..", "x"), up(".", "x"), up("a/..", "x"), up("a/", "x"), up("nul\x00", "x"), up(strings.Repeat("n", 256), "x"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"taken (1).txt", "taken (2).txt", "folder (1)", "dangling (1)", ".profile", ".profile (1)", strings.Repeat("ü", 124) + " (1).md",
		"up.txt", "absolute", "c.txt", "win.txt", "noext", "noext (1)"}
	for i, name := range want {
		if got.UploadedFiles[i] != "/workspace/"+name || h.content(id, name) != fmt.Sprint(i+1) {
			t.Errorf("%q is %q, want %q", got.UploadedFiles[i], h.content(id, name), name)
		}
	}
	if len(got.UploadedFiles) != len(want) || len(got.SkippedFiles) != 7 {
		t.Errorf("%q", got)
	}
	for _, s := range got.SkippedFiles {
		if !strings.HasSuffix(s.Reason, ".") {
			t.Errorf("%+v", s)
		}
	}
	if h.content(id, "taken.txt") != "old" || h.content(id, long) != "old" {
		t.Error("a file was replaced")
	}
	if _, err := os.Stat(h.dir + "/up.txt"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was stored outside")
	}
}

// form makes a body by hand, as other clients do.
func form(parts ...[2]string) (body *bytes.Buffer, contentType string) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		part, _ := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p[0]}})
		_, _ = part.Write([]byte(p[1]))
	}
	_ = w.Close()
	return body, w.FormDataContentType()
}

// Browsers and older libraries write names in their own ways.
func TestUploadForms(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	body, kind := form(
		[2]string{`form-data; name="files"; filename="a%22b%0D%0A.txt"`, "browser"},
		[2]string{`form-data; name="files"; filename="q\"uote.txt"`, "go"},
		[2]string{"form-data; name=\"files\"; filename=\"raw\xe9.txt\"", "bytes"},
		[2]string{`form-data; name="files"; filename="caf%E9 100%.txt"`, "percent"},
		[2]string{`form-data; name=files; filename=plain.txt`, "token"},
		[2]string{`form-data; name="other"; filename="x.txt"`, "not ours"},
		[2]string{`form-data; name="files"`, "no name"},
		[2]string{`form-data; name="files"; filename="x"; filename="y"`, "twice"},
		[2]string{``, "nothing"})
	a := h.send(h.request("POST", "/api/conversations/"+id+"/upload-files", body, "Content-Type", kind)).want(t, 200)
	got := decoded[api.Uploaded](t, a)
	for name, content := range map[string]string{"a\"b\r\n.txt": "browser", `q"uote.txt`: "go", "raw\xe9.txt": "bytes", "caf%E9 100%.txt": "percent", "plain.txt": "token"} {
		if h.content(id, name) != content || !slices.Contains(got.UploadedFiles, "/workspace/"+api.EncodeName([]byte(name))) {
			t.Errorf("%q: %q, %q", name, h.content(id, name), got.UploadedFiles)
		}
	}
	if len(h.names(id)) != 5 || len(got.SkippedFiles) != 4 {
		t.Errorf("%q %v", h.names(id), got.SkippedFiles)
	}
	path := "/api/conversations/" + id + "/upload-files"
	h.do("POST", path, `{"files":[]}`).want(t, 415, "multipart/form-data")
	h.do("POST", path, "x", "Content-Type", "multipart/form-data").want(t, 415)
	h.do("POST", path, "no boundary here", "Content-Type", kind).want(t, 400, "ended early")
	empty, kind := form()
	h.send(h.request("POST", path, empty, "Content-Type", kind)).want(t, 422, `["body","files"]`)
	other, kind := form([2]string{`form-data; name="file"; filename="x.txt"`, "not ours"})
	h.send(h.request("POST", path, other, "Content-Type", kind)).want(t, 422, `["body","files"]`)
}

// What is too large is refused, and nothing of the request stays.
func TestUploadLimits(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	big := func(n int64) client.Upload {
		return client.Upload{Name: "big", Data: io.LimitReader(endless{}, n)}
	}
	// Larger than any other body may be.
	got, err := h.client.Upload(t.Context(), id, "", big(rest.MaxBody+1))
	if err != nil || len(got.UploadedFiles) != 1 {
		t.Fatalf("%v %v", err, got)
	}
	if info, err := os.Stat(h.path(id, "big")); err != nil || info.Size() != rest.MaxBody+1 {
		t.Errorf("%v %v", err, info)
	}
	before := h.names(id)
	// By its announced length, before anything is sent.
	h.announce("/api/conversations/"+id+"/upload-files", files.MaxUpload+1).want(t, 413, "100 MiB", api.CodeTooLarge)
	// In the middle, after a small file was stored.
	req := h.chunked(id, up("small", "x"), big(files.MaxUpload))
	h.send(req).want(t, 413, "100 MiB")
	// The runner removes what it has received when it hears that no more comes.
	after := h.names(id)
	for deadline := time.Now().Add(time.Minute); !slices.Equal(after, before) && time.Now().Before(deadline); {
		after = h.names(id)
	}
	if !slices.Equal(after, before) {
		t.Errorf("left behind: %q", after)
	}
	many := make([]client.Upload, files.MaxFiles+1)
	for i := range many {
		many[i] = up(fmt.Sprint("m", i), "")
	}
	_, err = h.client.Upload(t.Context(), id, "", many...)
	refused(t, err, 413, "1000 files")
	if after := h.names(id); !slices.Equal(after, before) {
		t.Errorf("left behind: %d files", len(after))
	}
	// The limit of every other body is what it was.
	h.announce(toCreate, rest.MaxBody+1).want(t, 413, "16 MiB")
}

// chunked is a request of unknown length.
func (h *sandboxRig) chunked(id string, files ...client.Upload) *http.Request {
	h.t.Helper()
	var head bytes.Buffer
	w := multipart.NewWriter(&head)
	var body []io.Reader
	for _, f := range files {
		if _, err := w.CreateFormFile("files", f.Name); err != nil {
			h.t.Fatal(err)
		}
		body = append(body, bytes.NewReader(bytes.Clone(head.Bytes())), f.Data)
		head.Reset()
	}
	_ = w.Close()
	body = append(body, &head)
	return h.request("POST", "/api/conversations/"+id+"/upload-files", io.NopCloser(io.MultiReader(body...)), "Content-Type", w.FormDataContentType())
}

// A client that goes away in the middle leaves nothing.
func TestUploadThatBreaksOff(t *testing.T) {
	finished := make(chan Finished, 10)
	h := newSandboxRig(t, tune{config: func(c *Config) {
		c.Telemetry.Observe = func(f Finished) {
			if strings.HasSuffix(f.Route, "/upload-files") {
				finished <- f
			}
		}
	}})
	id, _ := h.begun()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// So much can only be on its way when the server has taken the first file.
	begun, hold := make(chan struct{}), make(chan struct{})
	data := io.MultiReader(io.LimitReader(endless{}, 32<<20), readFunc(func([]byte) (int, error) {
		close(begun)
		<-hold
		return 0, io.ErrUnexpectedEOF
	}))
	failed := make(chan error, 1)
	go func() {
		_, err := h.client.Upload(ctx, id, "", up("first", "x"), client.Upload{Name: "half", Data: data})
		failed <- err
	}()
	<-begun
	if names := h.names(id); !slices.Contains(names, "first") || slices.Contains(names, "half") {
		t.Errorf("in the middle: %q", names)
	}
	cancel()
	close(hold)
	if err := <-failed; err == nil {
		t.Error("half an upload succeeded")
	}
	<-finished
	for _, name := range h.names(id) {
		if !strings.HasPrefix(name, ".") { // what the runner writes into, until it has noticed
			t.Errorf("%q is left", name)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// Uploads at the same time, all of the same name, do not take each other's.
func TestUploadsAtOnce(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	const n = 20
	var all sync.WaitGroup
	var mu sync.Mutex
	stored := map[string]string{}
	for i := range n {
		all.Go(func() {
			content := strings.Repeat(fmt.Sprint(i, " "), 10_000)
			got, err := h.client.Upload(t.Context(), id, "", up("same.txt", content))
			if err != nil || len(got.UploadedFiles) != 1 {
				t.Errorf("%v %v", err, got)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			name := strings.TrimPrefix(got.UploadedFiles[0], "/workspace/")
			if stored[name] != "" {
				t.Errorf("%s was given twice", name)
			}
			stored[name] = content
		})
	}
	all.Wait()
	for name, content := range stored {
		if h.content(id, name) != content {
			t.Errorf("%s is not what was sent", name)
		}
	}
	if len(stored) != n || len(h.names(id)) != n {
		t.Errorf("%d names, %q", len(stored), h.names(id))
	}
}

func TestUploadOnce(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	files := func() []client.Upload { return []client.Upload{up("a.txt", "x"), up("b.txt", all256())} }
	first, err := h.client.Upload(t.Context(), id, "k1", files()...)
	if err != nil {
		t.Fatal(err)
	}
	// The client puts other lines between the parts each time.
	again, err := h.client.Upload(t.Context(), id, "k1", files()...)
	if err != nil || !slices.Equal(first.UploadedFiles, again.UploadedFiles) {
		t.Errorf("%v %v %v", err, first, again)
	}
	if len(h.names(id)) != 2 {
		t.Errorf("%q", h.names(id))
	}
	for _, other := range [][]client.Upload{{up("a.txt", "x")}, {up("a.txt", "y"), up("b.txt", all256())}, {up("A.txt", "x"), up("b.txt", all256())}} {
		_, err := h.client.Upload(t.Context(), id, "k1", other...)
		refused(t, err, 422, "another request")
	}
	_, err = h.client.Upload(t.Context(), id, strings.Repeat("k", 256), files()...)
	refused(t, err, 422, "Idempotency-Key")
	if len(h.names(id)) != 2 {
		t.Errorf("%q", h.names(id))
	}
}
