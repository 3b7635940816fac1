// Package natstest starts real NATS servers for tests: private ones, on a free port of the loopback interface, which end
// with the test process however that ends.
package natstest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Server is a NATS server.
type Server struct {
	// Host is where it listens, and URL the same as an address of it.
	Host, URL string

	t      testing.TB
	config string
	script *exec.Cmd
	input  io.Closer
	pid    int
}

// program finds the server: the one that scripts/nats-server has built in the folder of the repository, or one that is
// installed.
func program() (string, error) {
	dir, err := os.Getwd() // that of the package under test
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		built := filepath.Join(dir, "bin", "nats-server")
		if _, err := os.Stat(built); err == nil {
			return built, nil
		}
	}
	return exec.LookPath("nats-server")
}

// Available skips a test where there is no server, or fails it under CI=true.
func Available(t testing.TB) string {
	t.Helper()
	path, err := program()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("NATS: there is no nats-server; scripts/nats-server builds it")
	default:
		t.Skip("SKIPPED: NATS: there is no nats-server; scripts/nats-server builds it")
	}
	return path
}

// life runs a server until its input ends, which is when the process that started it is gone.
const life = `"$@" & pid=$!; echo $pid; cat >/dev/null; kill -9 $pid; wait $pid 2>/dev/null`

// Start starts a server with the lines of a configuration, and ends it with the test.
func Start(t testing.TB, config string) *Server {
	t.Helper()
	Available(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	_ = l.Close()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Host: host, URL: "nats://" + host, config: file}
	s.Begin()
	t.Cleanup(s.Kill)
	return s
}

// Begin starts the server again, at the same address, and waits until it accepts connections.
func (s *Server) Begin() {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(s.Host)
	s.script = exec.Command("/bin/sh", "-c", life, "sh", Available(s.t), "-a", host, "-p", port, "-c", s.config)
	input, err := s.script.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	output, err := s.script.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.input = input
	if err := s.script.Start(); err != nil {
		s.t.Fatal(err)
	}
	var line [32]byte
	n, err := output.Read(line[:])
	if err != nil {
		s.t.Fatal(err)
	}
	if s.pid, err = strconv.Atoi(string(line[:max(n-1, 0)])); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", s.Host)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(fmt.Errorf("the NATS server does not start: %w", err))
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Pid is the process of the server.
func (s *Server) Pid() int { return s.pid }

// Kill ends the server at once. It may be called twice.
func (s *Server) Kill() {
	_ = s.input.Close()
	_ = s.script.Wait()
}
