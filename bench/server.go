package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deckhand/bench/floor"
	"deckhand/bench/process"
)

// child is a server in a process of its own: ours, or the floor's.
type child struct {
	cmd   *exec.Cmd
	addr  string
	dir   string
	key   string
	ended chan error
	said  *os.File      // what it wrote, for when it fails
	took  time.Duration // from start to the first healthy answer
}

// startTime is how long a server may take to become healthy.
const startTime = 30 * time.Second

// start runs a program until it answers. It is a group of its own, so that a
// signal reaches it also behind a tracer.
func (b *bench) start(addr, dir string, name string, args ...string) (*child, error) {
	said, err := os.CreateTemp(b.dir, "said-") // not a pipe: reading it would cost the time that is measured
	if err != nil {
		return nil, err
	}
	c := &child{addr: addr, dir: dir, ended: make(chan error, 1), said: said}
	c.cmd = exec.CommandContext(b.ctx, name, args...)
	c.cmd.Env = environment()
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Cancel = func() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }
	begin := time.Now()
	if err := c.cmd.Start(); err != nil {
		said.Close()
		return nil, err
	}
	go func() { c.ended <- c.cmd.Wait() }()
	if err := c.await(begin); err != nil {
		c.stop()
		text, _ := os.ReadFile(said.Name())
		return nil, fmt.Errorf("%s: %w\n%.2000s", filepath.Base(name), err, text)
	}
	return c, nil
}

// environment is ours without what would configure a server.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DECKHAND_") {
			out = append(out, v)
		}
	}
	return out
}

// await asks every half millisecond, which is the error of the time it takes.
func (c *child) await(begin time.Time) error {
	health := message("GET", "/health", c.addr, "", "")
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for time.Since(begin) < startTime {
		select {
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("it ended at once: %w", err)
		case <-tick.C:
		}
		if _, err := ask1(c.addr, health); err == nil {
			c.took = time.Since(begin)
			return nil
		}
	}
	return errors.New("it did not become healthy")
}

// stop ends the process and waits for it.
func (c *child) stop() {
	group := -c.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGCONT)
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-c.ended
	}
	_ = c.said.Close()
}

// freeze keeps the process from using the processor while another is measured.
func (c *child) freeze() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGSTOP) }

func (c *child) thaw() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGCONT) }

// freeAddr returns a loopback address without a listener.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// deckhand starts the server on a data folder, without the rate limit and, for
// the floor writes no log either, with warnings only unless args say otherwise.
func (b *bench) deckhand(dir string, args ...string) (*child, error) {
	return b.deckhandUnder(nil, dir, args...)
}

// deckhandUnder starts it as the argument of another program.
func (b *bench) deckhandUnder(tracer []string, dir string, args ...string) (*child, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	line := append(tracer[:len(tracer):len(tracer)], b.server, "serve", "--addr", addr, "--data-dir", dir, "--rate-limit", "0")
	if len(args) == 0 {
		args = []string{"--log-level", "warn"}
	}
	line = append(line, args...)
	c, err := b.start(addr, dir, line[0], line[1:]...)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	c.key = strings.TrimSpace(string(key))
	if err != nil {
		c.stop()
	}
	return c, err
}

// fresh starts the server on a new folder with the demo model stored.
func (b *bench) fresh(args ...string) (*child, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	c, err := b.deckhand(dir, args...)
	if err != nil {
		return nil, err
	}
	if err := c.useDemo(c.key); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// useDemo stores the built-in model in the settings of a key's user.
func (c *child) useDemo(key string) error {
	_, err := ask1(c.addr, message("POST", "/api/settings", c.addr, key, `{"llm_model":"scripted/demo"}`))
	return err
}

// bare starts the floor.
func (b *bench) bare(loose bool) (*child, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := b.start(addr, dir, self, "-floor", addr, "-floor-file", filepath.Join(dir, "raw.db"), fmt.Sprintf("-floor-loose=%t", loose))
	if err == nil {
		c.key = floor.Key
	}
	return c, err
}

// rss is the process's memory in MB, once it has stopped changing.
func (c *child) rss(ctx context.Context) float64 {
	last := c.rssNow()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range 8 {
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
		now := c.rssNow()
		if diff := now - last; diff < 0.1 && diff > -0.1 {
			return now
		}
		last = now
	}
	return last
}

func (c *child) rssNow() float64 { return c.memory("VmRSS:") }

// rssPeak is the most memory that the process ever had, in MB.
func (c *child) rssPeak() float64 { return c.memory("VmHWM:") }

func (c *child) memory(field string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// cpu is the processor time that a child has used.
func (c *child) cpu() time.Duration { return process.CPU(c.cmd.Process.Pid) }
