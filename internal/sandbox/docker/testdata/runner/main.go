// Command runner is a stand-in for the real one: it answers hello, setenv and
// run, which is all that a driver's tests need.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/confine"
	"deckhand/internal/sandbox/runner/spawn"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("serve or dial?"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	socket := flags.String("socket", "", "")
	state := flags.String("state", "", "")
	output := flags.String("output", "", "")
	workspace := flags.String("workspace", "", "")
	network := flags.String("network", "", "")
	_ = flags.Parse(os.Args[2:])
	switch os.Args[1] {
	case "serve":
		s := &server{workspace: *workspace}
		fail(s.serve(*socket, *state, *output, *network))
	case "dial":
		fail(dial(*socket))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// dial connects standard input and output with the socket.
func dial(socket string) error {
	var conn net.Conn
	var err error
	// The socket of the run before this one may still lie there, so being refused
	// is no answer yet.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(end) {
			return err
		}
	}
	done := make(chan error, 2)
	go func() { _, err := io.Copy(conn, os.Stdin); done <- err }()
	go func() { _, err := io.Copy(os.Stdout, conn); done <- err }()
	return <-done
}

type server struct {
	workspace string
	boot      string
	spawner   *spawn.Spawner

	mu   sync.Mutex
	env  map[string]string
	peer *rpc.Peer
}

func (s *server) serve(socket, state, output, network string) error {
	for _, dir := range []string{filepath.Dir(socket), state, output} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := confine.Own(filepath.Dir(state), state, filepath.Dir(socket)); err != nil {
		return err
	}
	// Each run adds a letter, so that a test sees whether the state was kept.
	before, _ := os.ReadFile(filepath.Join(state, "boots"))
	s.boot = string(before) + "I"
	if err := os.WriteFile(filepath.Join(state, "boots"), []byte(s.boot), 0o600); err != nil {
		return err
	}
	var err error
	if s.spawner, err = spawn.New(spawn.Options{Confine: confine.From()}); err != nil {
		return err
	}
	if network == "proxied" {
		if err := s.proxy(); err != nil {
			return err
		}
	}
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		peer, err := rpc.Accept(conn, rpc.Handlers{Calls: map[string]rpc.Handler{"hello": s.hello, "setenv": s.setenv, "run": s.run}})
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.peer = peer
		s.mu.Unlock()
	}
}

// proxy hands every connection on to the server.
func (s *server) proxy() error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", sandbox.ProxyPort))
	if err != nil {
		return err
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				s.mu.Lock()
				peer := s.peer
				s.mu.Unlock()
				if peer == nil {
					return
				}
				call, err := peer.Open(context.Background(), "outward", 0, sandbox.OutwardParams{})
				if err != nil {
					return
				}
				out := call.Raw()
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return nil
}

func (s *server) hello(context.Context, *rpc.Call) (any, error) {
	host, _ := os.Hostname()
	return sandbox.Info{Boot: s.boot, Version: "stand-in", User: fmt.Sprint(os.Getuid()), Host: host}, nil
}

func (s *server) setenv(_ context.Context, c *rpc.Call) (any, error) {
	env := map[string]string{}
	if err := c.Into(&env); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.env = env
	s.mu.Unlock()
	return nil, nil
}

func (s *server) run(ctx context.Context, c *rpc.Call) (any, error) {
	var p sandbox.Process
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	if p.Dir == "" {
		p.Dir = s.workspace
	}
	env := os.Environ()
	s.mu.Lock()
	for k, v := range s.env {
		env = append(env, k+"="+v)
	}
	s.mu.Unlock()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	proc, err := s.spawner.Start(spawn.Attr{Args: p.Args, Dir: p.Dir, Env: env, Files: []*os.File{nil, outW, errW}})
	outW.Close()
	errW.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = proc.Signal(syscall.SIGKILL) })
	defer stop()
	var out, errs bytes.Buffer
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(&out, outR) })
	read.Go(func() { _, _ = io.Copy(&errs, errR) })
	status := proc.Wait()
	read.Wait()
	return sandbox.ProcessResult{Exit: status.Code, Stdout: out.Bytes(), Stderr: []byte(strings.TrimSpace(errs.String()))}, nil
}
