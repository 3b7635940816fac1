// Command runner is the least a sandbox needs to be tested: it enters the box
// and runs programs there, without shells, files or anything else.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/launcher"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/spawn"
)

func main() {
	switch os.Args[1] {
	case launcher.Argument:
		if err := launcher.Serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "probe":
		probe()
	case "eat":
		eat(512)
	case "deep":
		deep(3000)
	case "foreign":
		foreign()
	default:
		serve()
	}
}

func serve() {
	config, listener, confine, err := box.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	spawner, err := spawn.New(spawn.Options{Confine: confine})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go spawn.Reserve()
	if err := os.WriteFile(config.State+"/secret", []byte("the runner's own"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.WriteFile(config.Output+"/long", []byte("output"), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	boot := fmt.Sprint(time.Now().UnixNano())
	handlers := rpc.Handlers{Calls: map[string]rpc.Handler{
		"hello": func(context.Context, *rpc.Call) (any, error) {
			host, _ := os.Hostname()
			return sandbox.Info{Boot: boot, Version: config.ID, Host: host}, nil
		},
		"setenv": func(context.Context, *rpc.Call) (any, error) { return nil, nil },
		"run": func(ctx context.Context, c *rpc.Call) (any, error) {
			var p sandbox.Process
			if err := c.Into(&p); err != nil {
				return nil, err
			}
			return run(ctx, spawner, p)
		},
	}}
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if _, err := rpc.Accept(conn, handlers); err != nil {
			conn.Close()
		}
	}
}

func run(ctx context.Context, s *spawn.Spawner, p sandbox.Process) (any, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	dir := p.Dir
	if dir == "" {
		dir = box.Workspace
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	child, err := s.Start(spawn.Attr{Args: p.Args, Dir: dir, Env: env, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = child.Signal(9) })
	defer stop()
	var out bytes.Buffer
	_, _ = out.ReadFrom(r)
	return sandbox.ProcessResult{Exit: child.Wait().Code, Stdout: out.Bytes()}, nil
}
