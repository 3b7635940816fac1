//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"deckhand/torture/world/clock"
)

const (
	serverPort = "3000"
	modelPort  = 8000
	// startTime bounds how long a server may take to become healthy. It only ends a hang.
	startTime = 3 * time.Minute
)

// Server is a server that can be killed and started again. It has a supervisor: if it ends
// by itself, it is started again.
type Server struct {
	Name string
	Host *Host
	// Dir is its data directory, on a small disk of its own.
	Dir string
	// Base is its URL.
	Base string
	// Clock is its wall clock.
	Clock clock.Clock

	world *World
	args  []string
	log   *os.File

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{}
	starts int
}

// Start starts the server and waits until it is healthy. While the database cannot be
// reached, it is started again and again.
func (s *Server) Start(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	for {
		if err := s.launch(); err != nil {
			return err
		}
		if err := s.healthy(ctx); err == nil || ctx.Err() != nil {
			if err != nil {
				return fmt.Errorf("%s did not become healthy: %w\n%s", s.Name, err, s.Tail(4000))
			}
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.world.Program, s.args...)
	cmd.Dir = s.world.Dir
	cmd.Env = s.world.environment()
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := func() error { return s.world.Network.Start(s.Host, cmd) }
	err := error(nil)
	if clock.Possible && s.world.Clocks {
		err = s.Clock.Start(cmd, start)
	} else {
		err = start()
	}
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	s.starts++
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// errEnded says that the server ended before it was healthy.
var errEnded = errors.New("it ended")

func (s *Server) healthy(ctx context.Context) error {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if s.answers(ctx) {
			return nil
		}
	}
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+"/health", nil)
	if err != nil {
		return false
	}
	res, err := probe.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

var probe = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// PID is its process, 0 if it does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	select {
	case <-s.ended:
		return 0
	default:
		return s.cmd.Process.Pid
	}
}

// Kill ends the server with SIGKILL and waits for its end.
func (s *Server) Kill() error {
	s.mu.Lock()
	cmd, ended := s.cmd, s.ended
	s.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Kill() // it may have ended
	<-ended
	return nil
}

// Signal sends a signal.
func (s *Server) Signal(sig syscall.Signal) error {
	pid := s.PID()
	if pid == 0 {
		return nil
	}
	return syscall.Kill(pid, sig)
}

// Stop ends the server properly.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	cmd, ended := s.cmd, s.ended
	s.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not end after SIGTERM", s.Name)
	}
}

// Starts is how often it was started.
func (s *Server) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Descriptors is how many files it has open.
func (s *Server) Descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	return len(entries)
}

// AdminKey reads the key that the server made for its admin.
func (s *Server) AdminKey() (string, error) {
	key, err := os.ReadFile(filepath.Join(s.Dir, "admin.key"))
	return strings.TrimSpace(string(key)), err
}

// Tail is the end of what the server logged.
func (s *Server) Tail(n int64) string {
	info, err := s.log.Stat()
	if err != nil {
		return ""
	}
	n = min(n, info.Size())
	text := make([]byte, n)
	_, _ = s.log.ReadAt(text, info.Size()-n)
	return string(text)
}
