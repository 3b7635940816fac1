//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const natsPort = "4222"

// NATS is the message server between servers, on its own host.
type NATS struct {
	Host *Host

	world *World
	log   *os.File

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

func newNATS(ctx context.Context, w *World) (*NATS, error) {
	host, err := w.Network.Host("nats")
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(w.Dir, "nats.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	n := &NATS{Host: host, world: w, log: log}
	return n, n.Start(ctx)
}

// URL is its address.
func (n *NATS) URL() string { return "nats://" + net.JoinHostPort(n.Host.IP, natsPort) }

// Start starts the server and waits until it accepts connections.
func (n *NATS) Start(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	cmd := exec.Command(n.world.NATSProgram, "-a", n.Host.IP, "-p", natsPort)
	cmd.Stdout, cmd.Stderr = n.log, n.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := n.world.Network.Start(n.Host, cmd); err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	ended := make(chan struct{})
	n.cmd, n.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(n.Host.IP, natsPort), time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			return errors.New("NATS does not start: see nats.log")
		case <-ctx.Done():
			return fmt.Errorf("NATS does not start: %w", err)
		}
	}
}

// Kill kills the server and waits for its end.
func (n *NATS) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.ended
	return nil
}

// Signal sends a signal.
func (n *NATS) Signal(sig syscall.Signal) error { return syscall.Kill(n.PID(), sig) }

// PID is its process.
func (n *NATS) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd.Process.Pid
}
