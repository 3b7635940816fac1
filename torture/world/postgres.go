//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Postgres is a PostgreSQL server of its own, with fsync, on its own host.
type Postgres struct {
	Host *Host

	world      *World
	bin, dir   string
	credential *syscall.Credential
	log        *os.File

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// newPostgres makes a database cluster and starts it.
func newPostgres(ctx context.Context, w *World) (*Postgres, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	p := &Postgres{world: w, bin: bin, dir: filepath.Join(w.Dir, "postgres")}
	if p.Host, err = w.Network.Host("database"); err != nil {
		return nil, err
	}
	who, err := user.Lookup("nobody") // initdb refuses root
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(who.Uid, 10, 32)
	gid, _ := strconv.ParseUint(who.Gid, 10, 32)
	p.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := errors.Join(os.Mkdir(p.dir, 0o700), os.Chown(p.dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	if p.log, err = os.OpenFile(filepath.Join(w.Dir, "postgres.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	setup := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(p.dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale")
	setup.Dir, setup.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: p.credential}
	if out, err := setup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	const hba = "local all all trust\nhost all all 10.77.0.0/16 trust\n"
	if err := os.WriteFile(filepath.Join(p.dir, "data", "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed (Debian: apt-get install postgresql)")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// URL is the address of its database.
func (p *Postgres) URL() string {
	return fmt.Sprintf("postgres://postgres@%s:5432/postgres?sslmode=disable", p.Host.IP)
}

// Start starts the server and waits until it accepts connections. Processes of a killed
// one may still have to end, so it is tried again.
func (p *Postgres) Start(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	for {
		p.mu.Lock()
		cmd := exec.Command(filepath.Join(p.bin, "postgres"), "-D", filepath.Join(p.dir, "data"), "-k", p.dir,
			"-c", "listen_addresses="+p.Host.IP, "-c", "max_connections=100", "-c", "shared_buffers=32MB")
		cmd.Dir = p.dir
		cmd.Stdout, cmd.Stderr = p.log, p.log
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Setpgid: true}
		err := p.world.Network.Start(p.Host, cmd)
		if err != nil {
			p.mu.Unlock()
			return err
		}
		ended := make(chan struct{})
		p.cmd, p.ended = cmd, ended
		p.mu.Unlock()
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		if p.ready(ctx, ended) {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("PostgreSQL does not start: see postgres.log")
		}
	}
}

func (p *Postgres) ready(ctx context.Context, ended chan struct{}) bool {
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return false
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if exec.CommandContext(ctx, filepath.Join(p.bin, "pg_isready"), "-q", "-h", p.dir).Run() == nil {
			return true
		}
	}
}

// Kill kills all processes of the server.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	all := append([]int{cmd.Process.Pid}, childrenOf(cmd.Process.Pid)...)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	<-ended
	return nil
}

// Signal sends a signal to all processes of the server.
func (p *Postgres) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	for _, pid := range append([]int{pid}, childrenOf(pid)...) {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
	return nil
}

// Processes are those of the server.
func (p *Postgres) Processes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int{p.cmd.Process.Pid}, childrenOf(p.cmd.Process.Pid)...)
}
