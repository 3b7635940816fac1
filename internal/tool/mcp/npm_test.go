package mcp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/npmtest"
	"deckhand/internal/sandbox/runner/spawn"
	"deckhand/internal/tool"
)

// Short names of the real servers.
const (
	everything = npmtest.Everything
	filesystem = npmtest.Filesystem
)

// script is the program of a real server.
func script(t *testing.T, pkg string) string {
	t.Helper()
	return npmtest.Program(npmtest.Servers(t, npmtest.Spawned(t, spawner)), pkg)
}

// website starts the real server on a port and gives a way to end it.
func website(t *testing.T, mode string, port int) (end func()) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := spawner.Start(spawn.Attr{Args: []string{"node", script(t, everything), mode}, Dir: t.TempDir(),
		Env: append(os.Environ(), fmt.Sprint("PORT=", port)), Files: []*os.File{nil, out, out}})
	_ = out.Close()
	if err != nil {
		t.Fatal(err)
	}
	lines, up, gone := bufio.NewScanner(in), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for said := false; lines.Scan(); {
			if !said && strings.Contains(lines.Text(), fmt.Sprint(port)) {
				said = true
				close(up)
			}
		}
	}()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		_ = p.Signal(syscall.SIGKILL)
		p.Wait()
		<-gone
		_ = in.Close()
	}
	t.Cleanup(end)
	select {
	case <-up:
	case <-gone:
		t.Fatal("the server ended before it listened")
	}
	return end
}

// freePort returns a port without a listener.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestEverythingServer(t *testing.T) {
	for kind, where := range map[Kind][2]string{SSE: {"sse", "/sse"}, SHTTP: {"streamableHttp", "/mcp"}} {
		t.Run(string(kind), func(t *testing.T) {
			script(t, everything)
			port := freePort(t)
			end := website(t, where[0], port)
			r := newRig(t)
			s := r.set(Server{Kind: kind, Name: "everything", URL: fmt.Sprintf("http://127.0.0.1:%d%s", port, where[1])})
			good(t, r.run(r.named(s, "echo"), map[string]string{"message": "hello"}), "Echo: hello")
			image := r.run(r.named(s, "get-tiny-image"), nil)
			if image.Failed || len(image.Images) != 1 || !strings.HasPrefix(image.Images[0], "data:image/png;base64,") {
				t.Errorf("%.300v", image)
			}
			bad(t, r.run(r.named(s, "echo"), map[string]int{"message": 7}), "message")
			var shown []byte
			res := r.run(r.named(s, "trigger-long-running-operation"), map[string]float64{"duration": 0.2, "steps": 4}, func(c *tool.Call) {
				c.Live = func(b []byte) { shown = append(shown, b...) }
			})
			if res.Failed || !strings.Contains(string(shown), "/4") {
				t.Errorf("%+v %q", res, shown)
			}
			if kind == SSE {
				return
			}
			echo := r.named(s, "echo") // which has to find the server again
			end()
			website(t, where[0], port)
			good(t, r.run(echo, map[string]string{"message": "back"}), "Echo: back")
		})
	}
}
