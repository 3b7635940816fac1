package docker_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"

	"deckhand/internal/outbound"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

// registry is a real registry with one image. Engines allow plain HTTP on loopback.
type registry struct {
	*httptest.Server
	blobs    map[string][]byte
	manifest []byte
	// half is called when half of the largest layer was sent; the rest follows
	// when it returns.
	half func(context.Context)
	// login is true if the registry is for the user me.
	login bool

	mu    sync.Mutex
	pulls int
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

func newRegistry(t *testing.T, layers ...[]byte) *registry {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}}
	add := func(media string, content []byte) map[string]any {
		d := digest(content)
		r.blobs[d] = content
		return map[string]any{"mediaType": media, "size": len(content), "digest": d}
	}
	var packed []any
	var diffs []string
	for _, l := range layers {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(l)
		w.Close()
		packed = append(packed, add("application/vnd.docker.image.rootfs.diff.tar.gzip", z.Bytes()))
		diffs = append(diffs, digest(l))
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Env": []string{"PULLED=yes"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": add("application/vnd.docker.container.image.v1+json", config), "layers": packed,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// image is the name under which the engine finds it.
func (r *registry) image() string { return strings.TrimPrefix(r.URL, "http://") + "/some/image:1" }

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, ok := strings.CutPrefix(req.URL.Path, "/v2/some/image/")
	user, password, _ := req.BasicAuth()
	switch {
	case r.login && (user != "me" || password != "secret"):
		w.Header().Set("Www-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
	case req.URL.Path == "/v2/":
	case strings.HasPrefix(req.URL.Path, "/v2/private/"):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`)
	case ok && (name == "manifests/1" || name == "manifests/"+digest(r.manifest)):
		r.mu.Lock()
		r.pulls++
		r.mu.Unlock()
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest(r.manifest))
		w.Header().Set("Content-Length", fmt.Sprint(len(r.manifest)))
		if req.Method == http.MethodGet {
			_, _ = w.Write(r.manifest)
		}
	case ok && strings.HasPrefix(name, "blobs/"):
		r.blob(w, req, r.blobs[strings.TrimPrefix(name, "blobs/")])
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
	}
}

func (r *registry) blob(w http.ResponseWriter, req *http.Request, content []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if req.Method == http.MethodHead {
		return
	}
	if r.half != nil && len(content) > 4<<20 {
		_, _ = w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush()
		r.half(req.Context())
		content = content[len(content)/2:]
	}
	_, _ = w.Write(content)
}

// largeLayer is one that does not get smaller when it is packed.
func largeLayer(t *testing.T) []byte {
	noise := make([]byte, 6<<20)
	_, _ = rand.Read(noise)
	return dockertest.Tar(t, dockertest.File{Name: "noise", Data: noise})
}

// plainRegistries is for engines that speak to a registry on loopback without
// being told to; Podman has to be, by a file in /etc.
func plainRegistries(t *testing.T) {
	t.Helper()
	dockertest.Engine(t)
	if (&rig{t: t, engine: dockertest.Client(t)}).podman() {
		dockertest.Missing(t, "Podman does not pull from a registry on loopback")
	}
}

// forget removes an image from the engine.
func (r *rig) forget(image string) {
	r.t.Cleanup(func() {
		_, _ = r.engine.ImageRemove(context.Background(), image, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	})
}

func TestPull(t *testing.T) {
	t.Parallel()
	plainRegistries(t)
	reg := newRegistry(t, dockertest.Tar(t, dockertest.Busybox(t)...), largeLayer(t))
	var mu sync.Mutex
	var told []sandbox.Progress
	partly := make(chan struct{})
	reg.half = func(ctx context.Context) { // until progress was reported
		select {
		case <-partly:
		case <-ctx.Done():
		}
	}
	// The image goes after the sandboxes that are made of it.
	(&rig{t: t, engine: dockertest.Client(t)}).forget(reg.image())
	r := newRig(t)
	half := regexp.MustCompile(`^Pulling \S+/some/image:1: [01] of 2 layers, \d of [67] MB$`)
	progress := func(p sandbox.Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
		if half.MatchString(p.Message) {
			select {
			case <-partly:
			default:
				close(partly)
			}
		}
	}
	// Two want it at the same time: it is pulled once.
	var wait sync.WaitGroup
	ids := []string{newID(), newID()}
	for _, id := range ids {
		wait.Go(func() {
			if _, err := r.Start(t.Context(), sandbox.Spec{ID: id, Image: reg.image()}, progress); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	r.want(r.attach(sandbox.Handle{ID: ids[0]}), "echo $PULLED; wc -c < /noise", "yes\n6291456")
	var steps []string
	for _, p := range told {
		steps = append(steps, fmt.Sprintf("%s %s", p.Step, p.Message))
	}
	all := strings.Join(steps, "\n")
	t.Log("\n" + all)
	for _, want := range []string{"pulling Pulling " + reg.image() + "\n", ": 2 of 2 layers, ", "starting Starting " + reg.image()} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not reported", want)
		}
	}
	if len(told) > 40 {
		t.Errorf("%d messages are too many to read", len(told))
	}

	// What is there is not asked for again.
	reg.mu.Lock()
	before := reg.pulls
	reg.mu.Unlock()
	if _, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: reg.image()}, progress); err != nil {
		t.Fatal(err)
	}
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.pulls != before {
		t.Error("a local image was pulled again")
	}
}

// A private registry gets the login of the server's user. --sandbox-pull says when it is asked.
func TestPrivateRegistry(t *testing.T) {
	plainRegistries(t)
	reg := newRegistry(t, dockertest.Tar(t, dockertest.Busybox(t)...))
	reg.login = true
	(&rig{t: t, engine: dockertest.Client(t)}).forget(reg.image())
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	r := newRig(t)
	_, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: reg.image()}, nil)
	r.refused(err, "does not exist or needs a login", "docker login")

	login := fmt.Sprintf(`{"auths": {%q: {"username": "me", "password": "secret"}}}`, strings.TrimPrefix(reg.URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	never := newRig(t, func(o *docker.Options) { o.Pull = "never" })
	_, err = never.Start(t.Context(), sandbox.Spec{ID: newID(), Image: reg.image()}, nil)
	never.refused(err, "--sandbox-pull is never")

	box, _ := r.open(sandbox.Spec{Image: reg.image()}) // a login needs no restart
	r.want(box, "echo $PULLED", "yes")
	always := newRig(t, func(o *docker.Options) { o.Pull = "always" })
	for _, want := range []bool{true, false} { // the second time, there is a container
		reg.mu.Lock()
		before := reg.pulls
		reg.mu.Unlock()
		if _, err := always.Start(t.Context(), sandbox.Spec{ID: "t_always", Image: reg.image()}, nil); err != nil {
			t.Fatal(err)
		}
		reg.mu.Lock()
		asked := reg.pulls > before
		reg.mu.Unlock()
		if asked != want {
			t.Errorf("the registry was asked: %t, want %t", asked, want)
		}
	}
}

// A user names a registry of a private network: neither it nor what it refers to is asked, unless the operator allows it.
func TestRegistriesOfUsers(t *testing.T) {
	plainRegistries(t)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"INTERNAL BODY"}]}`)
	}))
	t.Cleanup(inside.Close)
	var asked atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Www-Authenticate", `Bearer realm="`+inside.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(front.Close)
	host := strings.TrimPrefix(front.URL, "http://")
	image := host + "/some/image:1"
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	with := func(own string, p outbound.Policy) *rig {
		return newRig(t, func(o *docker.Options) { o.Image, o.Reach = own, p.CheckPeer })
	}
	start := func(r *rig) error {
		_, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: image}, nil)
		return err
	}
	closed := with("busybox", outbound.Policy{})
	closed.refused(start(closed), image, "--allow-private "+host)
	if n := asked.Load(); n > 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	allow, err := outbound.ParseAllow(host)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*rig{
		"allowed": with("busybox", outbound.Policy{Allow: allow}), "the operator's": with(host+"/the/default", outbound.Policy{}),
	} {
		before := asked.Load()
		err := start(r)
		r.refused(err, "needs a login")
		if strings.Contains(fmt.Sprintf("%+v", err), "INTERNAL") || strings.Contains(err.Error(), strings.TrimPrefix(inside.URL, "http://")) {
			t.Errorf("%s: the error says what is inside: %v", name, err)
		}
		if asked.Load() == before {
			t.Errorf("%s: the registry was not asked", name)
		}
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(`{"auths": {%q: {"username": "me", "password": "secret"}}}`, host))
	closed.refused(start(closed), "needs a login")
	write(`{"auths": `)
	err = start(closed)
	closed.refused(err, image, "cannot use its login")
	if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "config.json") {
		t.Errorf("the error names a file of the server: %v", err)
	}
}

func TestPullGivenUp(t *testing.T) {
	t.Parallel()
	plainRegistries(t)
	reg := newRegistry(t, largeLayer(t))
	(&rig{t: t, engine: dockertest.Client(t)}).forget(reg.image())
	r := newRig(t)
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	reg.half = func(ctx context.Context) {
		once.Do(func() { close(stuck) })
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	id := newID()
	go func() {
		_, err := r.Start(ctx, sandbox.Spec{ID: id, Image: reg.image()}, nil)
		started <- err
	}()
	select {
	case <-stuck:
	case err := <-started:
		t.Fatal(err)
	}
	// A sandbox that waits for its image can be destroyed.
	if err := r.Destroy(t.Context(), sandbox.Handle{ID: id}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-started; err != context.Canceled {
		t.Errorf("given up: %v", err)
	}
	close(release)
	// It is not in the way of the next one.
	if _, err := r.Start(t.Context(), sandbox.Spec{ID: id, Image: reg.image()}, nil); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestPullRefused(t *testing.T) {
	t.Parallel()
	plainRegistries(t)
	reg := newRegistry(t, dockertest.Tar(t))
	closed := httptest.NewServer(nil)
	closed.Close()
	r := newRig(t)
	host := strings.TrimPrefix(reg.URL, "http://")
	for _, c := range []struct {
		image string
		words []string
	}{
		{host + "/some/image:none", []string{"does not exist or needs a login"}},
		{host + "/private/image:1", []string{"does not exist or needs a login"}},
		{strings.TrimPrefix(closed.URL, "http://") + "/some/image:1", []string{"cannot be reached", "log of the server"}},
		{"Not An Image", []string{"is not the name of an image"}},
	} {
		_, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: c.image}, nil)
		r.refused(err, append(c.words, c.image)...)
		t.Log(err)
	}
	found, err := r.List(t.Context())
	if err != nil || len(found) != 0 {
		t.Errorf("something was left: %v, %v", found, err)
	}
}
