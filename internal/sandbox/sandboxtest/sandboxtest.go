// Package sandboxtest is the conformance suite for every sandbox.Driver. A driver's test
// calls Run, and Escapes if it isolates processes, and adds only its own cases.
package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/soak"
)

// Options say which driver, and what it can do.
type Options struct {
	// New makes a driver whose sandboxes are its own. Called again with the same t it makes
	// another over the same state, like a restarted server. See Dir
	// and Name. The suite destroys what it made, and closes drivers that have a
	// Close method.
	New func(t *testing.T, out sandbox.Outward) sandbox.Driver
	// Image is what sandboxes are made of, "" for the driver's own.
	Image string
	// Confined says that there are walls: the workspace is sandbox.Workspace, the
	// network is loopback, and Spec.Mounts works.
	Confined bool
	// Limits says that memory, processes and processors can be bounded here, Disk
	// that the size of a file can.
	Limits, Disk bool
	// Shell is what Info must call the shell; "" for either.
	Shell string
	// NoGit says that there is no git inside.
	NoGit bool
	// Kill ends the runner from outside, as a machine would that runs out of
	// memory, and returns when it is dead. nil if there is no such way.
	Kill func(t *testing.T, h sandbox.Handle)
	// Connectors says that the driver starts a process inside for each connection.
	Connectors bool
	// Folders says that folders of this machine can be workspaces. Drivers with State always support them.
	Folders bool
	// Foreign says that sandboxes run on an engine of another user, which cannot open a folder of this one.
	Foreign bool
	// State is the folder where the driver that New makes for t keeps its things
	// on this machine; nil if it keeps none here.
	State func(t *testing.T) string
	// Brief leaves out what tests the runner alone: it is the same program with
	// every driver, and is tried in full with local and docker. A soak leaves
	// nothing out.
	Brief bool
}

// briefly says in the environment of a test program what Options.Brief says.
const briefly = "DECKHAND_TEST_BRIEFLY"

// test is one test with a driver of its own, or one that shares a sandbox with
// the others of its group.
type test[T any] struct {
	name string
	run  func(t *testing.T, b T)
	// when is whether the driver can do it; nil for all.
	when func(o Options) bool
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	soak.NotShort(t, "runs a whole suite")
	brief := (o.Brief || os.Getenv(briefly) != "") && !soak.On()
	for _, g := range []struct {
		name   string
		tests  []test[*box]
		runner bool // all of it happens within the runner
	}{
		{"Shell", shellTests, true}, {"Input", inputTests, true}, {"Output", outputTests, true}, {"Tools", toolTests, true},
		{"Files", fileTests, false}, {"Paths", pathTests, false},
	} {
		if g.runner && brief {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, o, sandbox.Spec{}, nil)
			for _, test := range g.tests {
				if test.when == nil || test.when(o) {
					t.Run(test.name, func(t *testing.T) {
						t.Parallel()
						test.run(t, b)
					})
				}
			}
		})
	}
	for _, tests := range [][]test[Options]{aloneTests, againTests, lifeTests, lookTests, outwardTests, suspendTests, checkpointTests} {
		for _, test := range tests {
			if test.when == nil || test.when(o) {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(t, o)
				})
			}
		}
	}
}

// box is a sandbox with a connection to it.
type box struct {
	*sandbox.Sandbox
	driver  sandbox.Driver
	handle  sandbox.Handle
	options Options
	root    string // what the workspace is called inside

	helper sync.Once
}

// bound is how long anything may take. It is no measure: it only turns what
// would wait forever into a failure.
const bound = 2 * time.Minute

// within is the test's context, bounded.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// afterwards is a context for cleaning up, when that of the test has ended.
func afterwards() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), bound)
}

// driver makes a driver, and leaves nothing of its sandboxes behind.
func driver(t *testing.T, o Options, out sandbox.Outward) sandbox.Driver {
	t.Helper()
	d := o.New(t, out)
	t.Cleanup(func() {
		ctx, cancel := afterwards()
		defer cancel()
		found, err := d.List(ctx)
		if err != nil {
			t.Errorf("listing what is left: %v", err)
		}
		for _, f := range found {
			if err := d.Destroy(ctx, f.Handle); err != nil {
				t.Errorf("destroying %s: %v", f.Handle.ID, err)
			}
		}
		if left, err := d.List(ctx); err != nil || len(left) > 0 {
			t.Errorf("after everything was destroyed there is still %v, %v", left, err)
		}
		if c, ok := d.(io.Closer); ok {
			if err := c.Close(); err != nil {
				t.Errorf("closing the driver: %v", err)
			}
		}
	})
	return d
}

// open starts a sandbox with a driver of its own and attaches to it.
func open(t *testing.T, o Options, spec sandbox.Spec, out sandbox.Outward) *box {
	t.Helper()
	return enter(t, o, driver(t, o, out), spec)
}

// enter starts a sandbox and attaches to it.
func enter(t *testing.T, o Options, d sandbox.Driver, spec sandbox.Spec) *box {
	t.Helper()
	if spec.ID == "" {
		spec.ID = "box"
	}
	if spec.Image == "" {
		spec.Image = o.Image
	}
	spec.Seal = bytes.Repeat([]byte("k"), 32) // every runner of a sandbox is given the same
	s, h, err := sandbox.Open(within(t), d, spec, nil)
	must(t, err)
	return hold(t, o, d, h, s)
}

// attach connects to a sandbox that runs.
func attach(t *testing.T, o Options, d sandbox.Driver, h sandbox.Handle) *box {
	t.Helper()
	s, err := d.Attach(within(t), h)
	must(t, err)
	return hold(t, o, d, h, s)
}

func hold(t *testing.T, o Options, d sandbox.Driver, h sandbox.Handle, s *sandbox.Sandbox) *box {
	t.Helper()
	t.Cleanup(func() { _ = s.Close() }) // it may have ended before
	b := &box{Sandbox: s, driver: d, handle: h, options: o}
	r, err := s.Run(within(t), sandbox.Process{Args: []string{"pwd"}}, nil)
	must(t, err)
	b.root = strings.TrimSuffix(string(r.Stdout), "\n")
	if o.Confined && b.root != sandbox.Workspace {
		t.Fatalf("programs begin in %q, want %s", b.root, sandbox.Workspace)
	}
	return b
}

// stored is a handle as it comes back from the log.
func stored(t *testing.T, h sandbox.Handle) sandbox.Handle {
	t.Helper()
	b, err := json.Marshal(h)
	must(t, err)
	var back sandbox.Handle
	must(t, json.Unmarshal(b, &back))
	return back
}

var counter atomic.Int64

// newID is an id that no other command has.
func newID(t *testing.T) string { return fmt.Sprintf("%s/%d", t.Name(), counter.Add(1)) }

// sh runs a command in the shell that is called after the test, to its end.
func (b *box) sh(t *testing.T, format string, args ...any) sandbox.Result {
	t.Helper()
	return b.in(t, t.Name(), format, args...)
}

// in runs a command in a shell, to its end.
func (b *box) in(t *testing.T, shell, format string, args ...any) sandbox.Result {
	t.Helper()
	return b.exec(t, sandbox.Command{Shell: shell, Text: fmt.Sprintf(format, args...)}, nil)
}

// exec runs any command, with an id of its own if it has none.
func (b *box) exec(t *testing.T, c sandbox.Command, live func([]byte)) sandbox.Result {
	t.Helper()
	if c.ID == "" {
		c.ID = newID(t)
	}
	r, err := b.Exec(within(t), c, live)
	if err != nil {
		t.Fatalf("%s: %v", c.Text, err)
	}
	if r.ID != c.ID {
		t.Errorf("the result of %s is called %s", c.ID, r.ID)
	}
	return r
}

// ok runs a command that must succeed, and returns what it says.
func (b *box) ok(t *testing.T, format string, args ...any) string {
	t.Helper()
	r := b.sh(t, format, args...)
	if r.Exit != 0 || r.Refused != "" {
		t.Fatalf("%s\nended with %d: %s%s", fmt.Sprintf(format, args...), r.Exit, r.Output, r.Refused)
	}
	return strings.TrimRight(r.Output, "\n")
}

// background is a command that runs while the test goes on.
type background struct {
	done   chan struct{}
	result sandbox.Result
	err    error

	mu   sync.Mutex
	seen []byte
	grew chan struct{}
}

// start runs a command in the background. The test does not end before it.
func (b *box) start(t *testing.T, c sandbox.Command) *background {
	t.Helper()
	if c.ID == "" {
		c.ID = newID(t)
	}
	g := &background{done: make(chan struct{}), grew: make(chan struct{}, 1)}
	ctx := within(t)
	go func() {
		defer close(g.done)
		g.result, g.err = b.Exec(ctx, c, func(p []byte) {
			g.mu.Lock()
			g.seen = append(g.seen, p...)
			g.mu.Unlock()
			select {
			case g.grew <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() { <-g.done })
	return g
}

func (g *background) output() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(g.seen)
}

// shows waits until the live output has the text.
func (g *background) shows(t *testing.T, text string) {
	t.Helper()
	ctx := within(t)
	for !strings.Contains(g.output(), text) {
		select {
		case <-g.grew:
		case <-g.done:
			if !strings.Contains(g.output(), text) {
				t.Fatalf("it ended (%+v, %v) and never showed %q live, only %q", g.result, g.err, text, g.output())
			}
		case <-ctx.Done():
			t.Fatalf("it never showed %q live, only %q", text, g.output())
		}
	}
}

// wait waits for the result.
func (g *background) wait(t *testing.T) sandbox.Result {
	t.Helper()
	select {
	case <-g.done:
	case <-within(t).Done():
		t.Fatalf("it did not end; it said %q", g.output())
	}
	must(t, g.err)
	return g.result
}

// folder makes a folder of the test's own and says what it is called inside.
func (b *box) folder(t *testing.T) (name, path string) {
	t.Helper()
	name = strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	must(t, b.Mkdir(within(t), at(name)))
	return name, b.root + "/" + name
}

// program is the helper's path inside.
func (b *box) program(t *testing.T) string {
	t.Helper()
	const name = ".sandboxtest/helper"
	b.helper.Do(func() {
		f, err := os.Open(helper(t))
		must(t, err)
		defer f.Close()
		_, err = b.Write(within(t), sandbox.WriteParams{PathParams: at(name), Mode: 0o755}, f)
		must(t, err)
	})
	return b.root + "/" + name
}

func at(path string) sandbox.PathParams { return sandbox.PathParams{Path: []byte(path)} }

// put writes a file.
func (b *box) put(t *testing.T, path, content string) {
	t.Helper()
	_, err := b.Write(within(t), sandbox.WriteParams{PathParams: at(path)}, strings.NewReader(content))
	must(t, err)
}

// get reads a file.
func (b *box) get(t *testing.T, path string) string {
	t.Helper()
	var w strings.Builder
	_, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(path)}, &w)
	must(t, err)
	return w.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, shorten(got), shorten(want))
	}
}

func contains(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s is %s, which does not have %q", what, shorten(got), want)
	}
}

func shorten(v any) string {
	s := fmt.Sprintf("%#v", v)
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// skip leaves a test out, visibly. In CI it fails instead.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// all does something many times at once and reports what failed.
func all(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func confined(o Options) bool { return o.Confined }

// refuseAll is an Outward for tests that need none.
func refuseAll(_ context.Context, _, _ string, c net.Conn) { c.Close() }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// cancellable is within, for a test that ends it.
func cancellable(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(within(t))
}

// eventually polls for a condition that sends no signal.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx := within(t)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !f() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// freed says whether the lock on a file is free, as soon as it is: what was
// killed holds it until it has ended, which takes a moment.
func (b *box) freed(t *testing.T, file string) string {
	t.Helper()
	h := b.program(t)
	return b.ok(t, "for i in $(seq 200); do %s locked %s >/dev/null 2>&1 && break; sleep 0.05; done; %s locked %s", h, file, h, file)
}
