package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Bounced starts a PgBouncer in transaction mode before the server, with so few connections that
// clients get another one with nearly every transaction. The function it returns makes the address
// through it of the address of a database.
func (s *Server) Bounced(t testing.TB) (through func(address string) string) {
	t.Helper()
	bouncer, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bouncer = "/usr/sbin/pgbouncer"; exec.Command(bouncer, "--version").Run() != nil {
			missing(t, fmt.Errorf("PgBouncer: %w", errMissing))
		}
	}
	dir, credential, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("[databases]\n* = host=%s port=%s user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = %s\nunix_socket_dir = %s\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\nlogfile = %s/log\nserver_round_robin = 1\n", s.Dir, port, port, dir, dir)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bouncer, "-q", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	through = func(direct string) string {
		u, err := url.Parse(direct)
		if err != nil {
			t.Fatal(err)
		}
		return address(dir, filepath.Base(u.Path))
	}
	ready(t, through(s.Address("postgres")))
	return through
}

// ready waits until PgBouncer accepts connections.
func ready(t testing.TB, address string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for {
		c, err := pgconn.Connect(ctx, address)
		if err == nil {
			_ = c.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
