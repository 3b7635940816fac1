package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestManyIdleConnections opens thousands of WebSockets that say nothing, looks
// what each costs, and then reaches every one of them.
func TestManyIdleConnections(t *testing.T) {
	count := 5000
	if raced || testing.Short() {
		count = 500
	}
	needFiles(t, 2*count+200) // both ends are ours
	conns := make(chan *Conn, count)
	g := newRig(t, Options{PingInterval: time.Hour}, func(ctx context.Context, c *Conn) {
		conns <- c
		<-ctx.Done()
	})
	before, goroutines := memory(), runtime.NumGoroutine()
	clients := dialMany(t, g.web.Listener.Addr().String(), count)
	all := make([]*Conn, count)
	for i := range all {
		all[i] = <-conns
	}
	each := float64(memory()-before) / float64(count) / 1024
	routines := float64(runtime.NumGoroutine()-goroutines) / float64(count)
	t.Logf("%d connections: %.1f kB and %.2f goroutines each", count, each, routines)
	if n := g.server.Len(); n != count {
		t.Errorf("%d connections are open", n)
	}
	if routines > 2.1 {
		t.Errorf("%.2f goroutines for a quiet connection", routines)
	}
	if each > 48 && !raced {
		t.Errorf("%.1f kB for a quiet connection", each)
	}

	for i, c := range all {
		if err := c.Send(t.Context(), Message{Data: fmt.Appendf(nil, "%05d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, c := range clients {
		frame := make([]byte, 2+len("400000"))
		if _, err := io.ReadFull(c, frame); err != nil {
			t.Fatal(err)
		}
		seen[string(frame[2:])] = true
	}
	if len(seen) != count {
		t.Errorf("%d different messages arrived", len(seen))
	}
}

// needFiles skips a test if the process may not open so many.
func needFiles(t *testing.T, files int) {
	t.Helper()
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil && limit.Cur < uint64(files) {
		limit.Cur = limit.Max
		err = errors.Join(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit), syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	}
	if err == nil && limit.Cur >= uint64(files) {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%d open files are needed, %d allowed (%v)", files, limit.Cur, err)
	}
	t.Skipf("SKIPPED: %d open files are needed, %d allowed (%v)", files, limit.Cur, err)
}

// memory is what the process uses, stacks included.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// dialMany opens WebSockets whose clients are bare connections: they cost next
// to nothing, so that what is measured is the server.
func dialMany(t *testing.T, addr string, count int) []net.Conn {
	t.Helper()
	const at = 16 // at a time
	clients := make([]net.Conn, count)
	t.Cleanup(func() {
		for _, c := range clients {
			if c != nil {
				_ = c.Close()
			}
		}
	})
	var dialers sync.WaitGroup
	for d := range at {
		dialers.Go(func() {
			r := bufio.NewReader(nil)
			for i := d; i < count; i += at {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				clients[i] = c
				r.Reset(c)
				if err := shakeHands(c, r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	dialers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return clients
}

func shakeHands(w io.Writer, r *bufio.Reader) error {
	_, err := io.WriteString(w, "GET /?"+onSocket+" HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return errors.New(res.Status)
	}
	head := make([]byte, 4) // of a frame between 126 bytes and 64 KiB
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return err
	}
	length := int(head[1])
	if length == 126 {
		if _, err := io.ReadFull(r, head[2:]); err != nil {
			return err
		}
		length = int(head[2])<<8 | int(head[3])
	}
	first := make([]byte, length)
	if _, err := io.ReadFull(r, first); err != nil {
		return err
	}
	if !strings.HasPrefix(string(first), "0{") || r.Buffered() != 0 {
		return fmt.Errorf("got %q", first)
	}
	return nil
}
