package engines_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/docker/engines"
	"deckhand/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a set of two engines, which only this test uses.
type rig struct {
	*engines.Set
	t       *testing.T
	options docker.Options
	own     []*dockertest.Own
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: starting two engines is slow")
	}
	r := &rig{t: t, own: []*dockertest.Own{dockertest.Start(t), dockertest.Start(t)}}
	for _, o := range r.own {
		r.options = docker.Options{Runner: sandboxtest.Runner(t), Image: o.BusyboxImage(t), Instance: "test-" + rand.Text()}
	}
	r.Set = r.open()
	return r
}

// in is the same rig for a part of the test.
func (r *rig) in(t *testing.T) *rig {
	part := *r
	part.t = t
	return &part
}

func (r *rig) hosts() []string { return []string{r.own[0].Host, r.own[1].Host} }

// open is another set of the same instance, as after a restart of the server.
func (r *rig) open(hosts ...string) *engines.Set {
	r.t.Helper()
	if len(hosts) == 0 {
		hosts = r.hosts()
	}
	s, err := engines.Open(r.options, hosts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	return s
}

// on is the driver of one engine alone.
func (r *rig) on(i int) *docker.Driver {
	r.t.Helper()
	o := r.options
	o.Host = r.own[i].Host
	d, err := docker.New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { d.Close() })
	return d
}

// start starts a sandbox and runs a script in it.
func (r *rig) start(s *engines.Set, spec sandbox.Spec, script string) (sandbox.Handle, string) {
	r.t.Helper()
	spec.Seal = make([]byte, 32)
	box, h, err := sandbox.Open(r.t.Context(), s, spec, nil)
	if err != nil {
		r.t.Fatalf("start %s: %v", spec.ID, err)
	}
	defer box.Close()
	got, err := box.Run(r.t.Context(), sandbox.Process{Args: []string{"/bin/sh", "-c", script}}, nil)
	if err != nil || got.Exit != 0 {
		r.t.Fatalf("%s in %s: %s%s, %v", script, spec.ID, got.Stdout, got.Stderr, err)
	}
	return logged(r.t, h), string(got.Stdout)
}

// logged is a handle as it comes back from the log.
func logged(t *testing.T, h sandbox.Handle) (back sandbox.Handle) {
	t.Helper()
	raw, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(raw, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// spread counts the sandboxes of each engine.
func (r *rig) spread() [2]int {
	r.t.Helper()
	return [2]int{len(r.ids(0)), len(r.ids(1))}
}

func (r *rig) ids(i int) (ids []string) {
	r.t.Helper()
	found, err := r.on(i).List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range found {
		ids = append(ids, f.Handle.ID)
	}
	return ids
}

// refused checks that a sandbox is unavailable for a reason, and not taken for gone.
func (r *rig) refused(err error, words ...string) {
	r.t.Helper()
	var why *sandbox.Unavailable
	if !errors.As(err, &why) || errors.Is(err, sandbox.ErrGone) {
		r.t.Fatalf("got %v, want an *Unavailable", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.t.Errorf("got %q, which does not have %q", err, w)
		}
	}
}

func TestEngines(t *testing.T) {
	r := newRig(t)
	handles := map[string]sandbox.Handle{}
	for i := range 4 {
		id := fmt.Sprintf("s%d", i)
		handles[id], _ = r.start(r.Set, sandbox.Spec{ID: id}, "echo "+id+" > file")
	}
	if got := r.spread(); got != [2]int{2, 2} {
		t.Fatalf("the engines have %v sandboxes, want two each", got)
	}
	second := r.ids(1)
	here, gone := r.ids(0)[0], second[0]

	t.Run("Restart", func(t *testing.T) {
		r := r.in(t)
		s := r.open(r.own[1].Host, r.own[0].Host) // in another order
		for id, h := range handles {
			for _, h := range []sandbox.Handle{h, {Driver: docker.Name, ID: id}} { // as older servers stored it
				box, err := s.Attach(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				box.Close()
			}
			if h, out := r.start(r.open(), sandbox.Spec{ID: id}, "cat file"); out != id+"\n" || string(h.Data) != string(handles[id].Data) {
				t.Errorf("%s was started anew: %q", id, out)
			}
		}
		if got := r.spread(); got != [2]int{2, 2} {
			t.Errorf("the engines have %v sandboxes", got)
		}
	})

	if err := r.Snapshot(t.Context(), handles[gone], "copy"); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(r.ids(1), "copy") {
		t.Error("a copy is not on the engine of its original")
	}

	t.Run("Gone", func(t *testing.T) { r.in(t).gone(here, gone, handles) })

	t.Run("Back", func(t *testing.T) {
		r := r.in(t)
		r.own[1].Resume(t)
		if h, out := r.start(r.Set, sandbox.Spec{ID: gone, Last: handles[gone]}, "cat file"); out != gone+"\n" || docker.EngineOf(h) != r.own[1].Host {
			t.Errorf("after its engine is back: %q", out)
		}
		if _, out := r.start(r.open(), sandbox.Spec{ID: "copy", Copied: true}, "cat file"); out != gone+"\n" {
			t.Errorf("the copy: %q", out)
		}
		before := r.spread()
		for i := range 2 {
			r.start(r.Set, sandbox.Spec{ID: fmt.Sprintf("back%d", i)}, "true")
		}
		if got := r.spread(); got[1] <= before[1] {
			t.Errorf("the engine that is back gets no new sandboxes: before %v, then %v", before, got)
		}
	})

	t.Run("Swept", func(t *testing.T) {
		r := r.in(t)
		found, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.spread(); len(found) != got[0]+got[1] {
			t.Errorf("%d sandboxes are listed, and the engines have %v", len(found), got)
		}
		s := r.open()
		for _, f := range found {
			if err := s.Destroy(t.Context(), sandbox.Handle{Driver: docker.Name, ID: f.Handle.ID}); err != nil {
				t.Error(err)
			}
		}
		if got := r.spread(); got != [2]int{} {
			t.Errorf("after all were destroyed the engines have %v", got)
		}
	})

	t.Run("Twice", func(t *testing.T) { r.in(t).twice() })
	t.Run("PrivateRegistry", func(t *testing.T) { r.in(t).privateRegistry() })
	t.Run("NeverPulled", func(t *testing.T) { r.in(t).neverPulled() })
	t.Run("Folder", func(t *testing.T) { r.in(t).folder() })
}

// gone ends the second engine, and looks what happens to sandboxes on it and to others.
func (r *rig) gone(here, gone string, handles map[string]sandbox.Handle) {
	t := r.t
	address := r.own[1].Host
	r.own[1].Halt(t)
	after := r.open() // a server that starts without the engine
	for _, s := range []*engines.Set{r.Set, after} {
		_, err := s.Attach(t.Context(), handles[gone])
		r.refused(err, address)
		_, err = s.Start(t.Context(), sandbox.Spec{ID: gone, Last: handles[gone]}, nil)
		r.refused(err, address)
		_, err = s.Start(t.Context(), sandbox.Spec{ID: "copy", Copied: true}, nil)
		r.refused(err, address)
		r.refused(s.Destroy(t.Context(), handles[gone]), address)
		if _, out := r.start(s, sandbox.Spec{ID: here, Last: handles[here]}, "cat file"); out != here+"\n" {
			t.Errorf("a sandbox of the other engine: %q", out)
		}
	}
	_, err := after.Attach(t.Context(), sandbox.Handle{Driver: docker.Name, ID: gone}) // as an older server stored it
	r.refused(err, address)
	if h, _ := r.start(after, sandbox.Spec{ID: "new"}, "true"); docker.EngineOf(h) != r.own[0].Host {
		t.Errorf("a new sandbox is on %s", docker.EngineOf(h))
	}
	found, err := after.List(t.Context())
	if err != nil || len(found) != 3 {
		t.Errorf("listed while an engine is gone: %v, %v", found, err)
	}
	if err := after.Ping(t.Context()); err != nil {
		t.Error(err)
	}

	// Each engine is shown, and the one that works is enough.
	state := after.Engines(t.Context())
	if len(state) != 2 || state[0].Error != "" || state[0].Sandboxes != 3 || state[0].CPUs == 0 || state[0].Memory == 0 || !strings.HasPrefix(state[0].Version, "Docker ") || state[1].Address != address || state[1].Error == "" {
		t.Errorf("the engines are shown as %+v", state)
	}
	fatal, named := false, 0
	for _, f := range after.Check(t.Context()) {
		fatal = fatal || f.Fatal
		if strings.Contains(f.What, address) && !f.OK {
			named++
		}
	}
	if fatal || named != 1 {
		t.Errorf("one of two engines is gone: fatal %v, %d findings about it", fatal, named)
	}

	// An engine that is not configured any more.
	one := r.open(r.own[0].Host)
	_, err = one.Start(t.Context(), sandbox.Spec{ID: gone, Last: handles[gone]}, nil)
	r.refused(err, "--docker-host "+address)
	if err := one.Destroy(t.Context(), handles[gone]); err != nil {
		t.Error(err)
	}
}

// twice has the same sandbox on both engines: one did not answer when it was started again elsewhere.
func (r *rig) twice() {
	t := r.t
	var both []sandbox.Handle
	for i := range r.own {
		h, err := r.on(i).Start(t.Context(), sandbox.Spec{ID: "twice"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, h)
	}
	s := r.open()
	box, err := s.Attach(t.Context(), both[1])
	if err != nil {
		t.Fatal(err)
	}
	box.Close()
	found, err := s.List(t.Context())
	if err != nil || len(found) != 1 || docker.EngineOf(found[0].Handle) != r.own[1].Host || !found[0].Running {
		t.Fatalf("found %v, %v", found, err)
	}
	if _, err := r.on(0).Attach(t.Context(), both[0]); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the other one still runs: %v", err)
	}
	for range r.own { // the second time, as the sweep of a deleted conversation does
		if err := s.Destroy(t.Context(), sandbox.Handle{Driver: docker.Name, ID: "twice"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.spread(); got != [2]int{} {
		t.Errorf("after both were destroyed the engines have %v", got)
	}
}

// folder: a sandbox in a folder of this machine is on an engine that sees the folder, however much it does.
func (r *rig) folder() {
	t := r.t
	s := r.open(forwarded(t, r.own[1].Host), r.own[0].Host)
	t.Cleanup(func() { r.cleared(s) })
	r.start(s, sandbox.Spec{ID: "before"}, "true")
	for i := range 2 {
		if h, _ := r.start(s, sandbox.Spec{ID: fmt.Sprintf("folder%d", i), Folder: t.TempDir()}, "true"); docker.EngineOf(h) != r.own[0].Host {
			t.Errorf("a sandbox in a folder is on %s", docker.EngineOf(h))
		}
	}
}

// forwarded is the address of an engine as if it were on another machine.
func forwarded(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	t.Cleanup(ended.Wait)
	t.Cleanup(func() { l.Close() })
	ended.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", strings.TrimPrefix(host, "unix://"))
			if err != nil {
				from.Close()
				continue
			}
			pass := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				a.Close()
				b.Close()
			}
			ended.Go(func() { pass(from, to) })
			ended.Go(func() { pass(to, from) })
		}
	})
	return "tcp://" + l.Addr().String()
}

// neverPulled: if images are not pulled, the engine that has the image is chosen, however much it does.
func (r *rig) neverPulled() {
	t := r.t
	t.Setenv("DOCKER_HOST", r.own[1].Host)
	r.options.Image, r.options.Pull = dockertest.BusyboxImage(t, "ENV ONLY=here"), "never"
	s := r.open()
	for i := range 3 {
		if h, _ := r.start(s, sandbox.Spec{ID: fmt.Sprintf("never%d", i)}, `test "$ONLY" = here`); docker.EngineOf(h) != r.own[1].Host {
			t.Errorf("a sandbox is on %s", docker.EngineOf(h))
		}
	}
	_, err := s.Start(t.Context(), sandbox.Spec{ID: "none", Image: "deckhand-test/none:1"}, nil)
	r.refused(err, "--sandbox-pull is never")
	r.cleared(s)
}

// cleared destroys all sandboxes.
func (r *rig) cleared(s *engines.Set) {
	r.t.Helper()
	found, err := s.List(context.Background())
	if err != nil {
		r.t.Error(err)
	}
	for _, f := range found {
		if err := s.Destroy(context.Background(), f.Handle); err != nil {
			r.t.Error(err)
		}
	}
}

// One sandbox runs on each kind of engine, all in one set. make engine-test runs the whole suite with each.
func TestKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starting three engines is slow")
	}
	r := &rig{t: t}
	var hosts []string
	for _, kind := range dockertest.Kinds {
		own := dockertest.StartKind(t, kind)
		r.own, hosts = append(r.own, own), append(hosts, own.Host)
		r.options = docker.Options{Runner: sandboxtest.Runner(t), Image: own.BusyboxImage(t), Instance: "test-" + rand.Text()}
	}
	r.Set = r.open(hosts...)
	t.Cleanup(func() { r.cleared(r.Set) })
	used := map[string]bool{}
	for _, kind := range dockertest.Kinds {
		h, _ := r.start(r.Set, sandbox.Spec{ID: kind, Limits: sandbox.Limits{Disk: 20 << 20}}, "echo first > file")
		if _, out := r.start(r.Set, sandbox.Spec{ID: kind, Last: h}, "head -c 30000000 /dev/zero > large || echo refused; rm large"); !strings.Contains(out, "refused") {
			t.Errorf("%s: a file is larger than the disk limit: %q", h.Data, out)
		}
		used[docker.EngineOf(h)] = true
		c, err := r.Checkpoint(t.Context(), h)
		if err != nil {
			t.Fatalf("%s: %v", h.Data, err)
		}
		r.start(r.Set, sandbox.Spec{ID: kind, Last: h}, "echo second > file")
		if _, err := r.Restore(t.Context(), h, sandbox.RestoreParams{Number: c.Number}); err != nil {
			t.Errorf("%s: %v", h.Data, err)
		}
		if err := r.Snapshot(t.Context(), h, kind+"-copy"); err != nil {
			t.Errorf("%s: %v", h.Data, err)
		}
		if err := r.Stop(t.Context(), h); err != nil {
			t.Errorf("%s: %v", h.Data, err)
		}
		for _, id := range []string{kind, kind + "-copy"} {
			if h, out := r.start(r.open(hosts...), sandbox.Spec{ID: id}, "cat file"); out != "first\n" {
				t.Errorf("%s: the file is %q", h.Data, out)
			}
		}
	}
	if len(used) != len(hosts) {
		t.Errorf("only %v have sandboxes", used)
	}
	for i, e := range r.Engines(t.Context()) {
		if e.Error != "" { // too slow on a busy machine
			t.Logf("%s did not say its version: %s", dockertest.Kinds[i], e.Error)
		} else if podman := strings.HasPrefix(dockertest.Kinds[i], "podman"); strings.HasPrefix(e.Version, "Podman ") != podman || strings.HasPrefix(e.Version, "Docker ") == podman {
			t.Errorf("%s is %q", dockertest.Kinds[i], e.Version)
		} else if e.Rootless != strings.HasSuffix(dockertest.Kinds[i], "rootless") {
			t.Errorf("%s says that rootless is %v", dockertest.Kinds[i], e.Rootless)
		}
	}
}

func TestAddresses(t *testing.T) {
	for want, hosts := range map[string][]string{
		"is set twice":           {"unix:///a.sock", "tcp://h:1", "unix:///a.sock"},
		"--docker-host nonsense": {"unix:///a.sock", "nonsense"},
		"certs=DIR":              {"tcp://h:1?x=y"},
		"/none/ca.pem":           {"tcp://h:1?certs=/none"},
	} {
		if _, err := engines.Open(docker.Options{}, hosts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", hosts, err, want)
		}
	}
}
