package shell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func (b *box) program(stdin io.Reader, args ...string) sandbox.ProcessResult {
	b.t.Helper()
	r, err := b.Run(b.t.Context(), sandbox.Process{Args: args, Env: map[string]string{"X": "y"}}, stdin)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	b := open(t)
	r := b.program(nil, "sh", "-c", "echo out $X; pwd; echo err >&2; test -t 0 || cat; exit 3")
	if r.Exit != 3 || string(r.Stdout) != "out y\n"+b.workspace+"\n" || string(r.Stderr) != "err\n" || r.Cut {
		t.Errorf("gave %d, %q, %q", r.Exit, r.Stdout, r.Stderr)
	}
	if r := b.program(strings.NewReader(strings.Repeat("x", 1<<20)), "wc", "-c"); strings.TrimSpace(string(r.Stdout)) != "1048576" {
		t.Errorf("what it read was %q", r.Stdout)
	}
	// It need not read what it is given.
	if r := b.program(strings.NewReader(strings.Repeat("x", 1<<20)), "true"); r.Exit != 0 {
		t.Errorf("true gave %d", r.Exit)
	}
	if r := b.program(nil, "sh", "-c", "kill -9 $$"); r.Exit != 137 {
		t.Errorf("a killed program gave %d", r.Exit)
	}
	// Nothing of it stays, and nothing that stays is waited for.
	if r := b.program(nil, "sh", "-c", "sleep 1000 & echo started"); string(r.Stdout) != "started\n" {
		t.Errorf("with something in the background: %q", r.Stdout)
	}
	if r := b.program(nil, "sh", "-c", "setsid sleep 1000 & echo started"); string(r.Stdout) != "started\n" {
		t.Errorf("with something that ran away: %q", r.Stdout)
	}
	if err := b.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRunElsewhere(t *testing.T) {
	b := open(t)
	if err := os.Mkdir(b.workspace+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": b.workspace, "sub": b.workspace + "/sub", "/": "/"} {
		r, err := b.Run(t.Context(), sandbox.Process{Args: []string{"pwd"}, Dir: dir}, nil)
		if err != nil || string(r.Stdout) != want+"\n" {
			t.Errorf("in %q: %q, %v", dir, r.Stdout, err)
		}
	}
	for _, p := range []sandbox.Process{{Args: []string{"there-is-no-such-program"}}, {Args: []string{"pwd"}, Dir: "none"}, {Args: []string{"./none"}}} {
		if _, err := b.Run(t.Context(), p, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v gave %v", p, err)
		}
	}
	if _, err := b.Run(t.Context(), sandbox.Process{}, nil); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("nothing gave %v", err)
	}
}

func TestRunLimit(t *testing.T) {
	b := open(t)
	r, err := b.Run(t.Context(), sandbox.Process{Args: []string{"sh", "-c", "yes | head -c 5000000; echo e >&2; exit 4"}, Limit: 10}, nil)
	if err != nil || r.Exit != 4 || string(r.Stdout) != "y\ny\ny\ny\ny\n" || string(r.Stderr) != "e\n" || !r.Cut {
		t.Errorf("gave %+v, %v", r, err)
	}
}

func TestRunEndsWithItsCaller(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, sandbox.Process{Args: []string{"sh", "-c", "trap '' TERM INT HUP; exec 3>gate; sleep 1000; sleep 1000"}}, nil)
		done <- err
	}()
	gate, err := os.Open(b.workspace + "/gate") // until it has begun
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("gave %v", err)
	}
	// It ends when the last holder of the other side closes it.
	if _, err := io.ReadAll(gate); err != nil {
		t.Fatal(err)
	}
}
