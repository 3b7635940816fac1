package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/load/process"
)

// Server is a server in a process of its own.
type Server struct {
	Addr string
	Dir  string // its data folder
	Key  string // an admin's, where it has users
	// Took is the time from the start of the process to the first healthy answer.
	Took time.Duration

	cmd   *exec.Cmd
	ended chan struct{} // closed when err is set
	err   error
	said  *os.File
}

// startTime is how long a server may take to become healthy.
const startTime = 30 * time.Second

// Start runs a program until it answers at addr. It is a process group of its own, so that a
// signal reaches it also behind a tracer. What it says goes to a file in logs: reading a pipe
// would cost the time that is measured. If this process is killed, the program gets a signal to stop.
func Start(ctx context.Context, logs, addr, name string, args ...string) (*Server, error) {
	said, err := os.CreateTemp(logs, "said-")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: addr, ended: make(chan struct{}), said: said}
	s.cmd = exec.CommandContext(ctx, name, args...)
	s.cmd.Env = Environment()
	s.cmd.Stdout, s.cmd.Stderr = said, said
	s.cmd.SysProcAttr = process.Group()
	s.cmd.Cancel = func() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM) }
	s.cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	started := make(chan error, 1)
	go func() {
		// Linux sends the signal when the thread that started the program exits, so lock this thread until the program ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.err = s.cmd.Wait()
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		said.Close()
		return nil, err
	}
	if err := s.await(begin); err != nil {
		s.Stop()
		text, _ := os.ReadFile(said.Name())
		return nil, fmt.Errorf("%s: %w\n%.2000s", filepath.Base(name), err, text)
	}
	return s, nil
}

// Serve starts deckhand serve on a data folder, with its defaults except for args. before
// comes ahead of the program on the command line, such as a tracer.
func Serve(ctx context.Context, logs, program, dir string, before []string, args ...string) (*Server, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	line := append(before[:len(before):len(before)], program, "serve", "--addr", addr, "--data-dir", dir)
	line = append(line, args...)
	s, err := Start(ctx, logs, addr, line[0], line[1:]...)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if s.Dir, s.Key = dir, strings.TrimSpace(string(key)); err != nil {
		s.Stop()
	}
	return s, err
}

// Environment is that of this process without what would configure a server.
func Environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DECKHAND_") {
			out = append(out, v)
		}
	}
	return out
}

// await asks every half millisecond, which is the error of the time it takes.
func (s *Server) await(begin time.Time) error {
	health := Message("GET", "/health", s.Addr, "", "")
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for time.Since(begin) < startTime {
		select {
		case <-s.ended:
			return fmt.Errorf("it ended at once: %w", cmp.Or(s.err, errors.New("without an error")))
		case <-tick.C:
		}
		if _, err := Ask1(s.Addr, health); err == nil {
			s.Took = time.Since(begin)
			return nil
		}
	}
	return errors.New("it did not become healthy")
}

// Stop ends the process and waits for it. It may be called twice.
func (s *Server) Stop() {
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.signal(syscall.SIGKILL)
		<-s.ended
	}
	_ = s.said.Close()
}

// signal reaches the process group, unless it is over and its number may be another's.
func (s *Server) signal(sig syscall.Signal) {
	select {
	case <-s.ended:
	default:
		_ = syscall.Kill(-s.cmd.Process.Pid, sig)
	}
}

// Kill ends the process at once, and waits for it.
func (s *Server) Kill() {
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// Freeze keeps the process from using the processor while another is measured.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// Program is what was started.
func (s *Server) Program() string { return s.cmd.Path }

// FreeAddr returns a loopback address without a listener.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// RSS is the process's memory in MB, once it has stopped changing.
func (s *Server) RSS(ctx context.Context) float64 {
	last := s.memory("VmRSS:")
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range 8 {
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
		now := s.memory("VmRSS:")
		if diff := now - last; diff < 0.1 && diff > -0.1 {
			return now
		}
		last = now
	}
	return last
}

// Peak is the most memory that the process ever had, in MB.
func (s *Server) Peak() float64 { return s.memory("VmHWM:") }

func (s *Server) memory(field string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// CPU is the processor time that the process has used, without its children.
func (s *Server) CPU() time.Duration { return process.CPU(s.cmd.Process.Pid) }

// Rest waits until the start is over and the process does next to nothing, at most ten
// seconds: what a server does once when it starts is not part of what a request costs.
func (s *Server) Rest(ctx context.Context) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	last := s.CPU()
	for range 33 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.CPU()
		if now-last <= 10*time.Millisecond {
			return
		}
		last = now
	}
}

// Metric reads one of the server's own figures: at addr, or at the server's own if that is empty.
func (s *Server) Metric(addr, name string) (float64, error) {
	if addr == "" {
		addr = s.Addr
	}
	text, err := Patient(func() ([]byte, error) { return Ask1(addr, Message("GET", "/metrics", addr, s.Key, "")) })
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the server does not say %s", name)
}
