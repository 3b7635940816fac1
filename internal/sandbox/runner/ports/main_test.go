package ports

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a runner of which only the ports exist, and the servers attached to it.
type box struct {
	t testing.TB

	mu       sync.Mutex
	peer     *rpc.Peer
	attached chan struct{}
}

func newBox(t testing.TB) *box { return &box{t: t, attached: make(chan struct{})} }

// attach connects a server, which answers outward connections with out.
func (b *box) attach(out sandbox.Outward) *sandbox.Sandbox {
	b.t.Helper()
	x, y := socketpair(b.t)
	calls, raw := Handlers()
	calls["hello"] = func(context.Context, *rpc.Call) (any, error) { return sandbox.Info{}, nil }
	peer, err := rpc.Accept(y, rpc.Handlers{Calls: calls, Raw: raw})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { peer.Close() })
	s, err := sandbox.Connect(b.t.Context(), sandbox.Link{ID: "box", Conn: x, Outward: out})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peer = peer
	close(b.attached)
	b.attached = make(chan struct{})
	return s
}

func (b *box) newest() *rpc.Peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peer
}

func (b *box) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attached
}

func socketpair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

// listenOn serves connections on a free port of the address until the test ends.
func listenOn(t testing.TB, address string, serve func(*net.TCPConn)) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// count answers, after the last byte, how many there were.
func count(c *net.TCPConn) {
	n, _ := io.Copy(io.Discard, c)
	_, _ = io.WriteString(c, number(n))
}
