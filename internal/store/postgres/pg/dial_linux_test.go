package pg

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"deckhand/internal/store/postgres/pgtest"
)

// Connections end by themselves when their packets are not acknowledged.
func TestConnectionsNoticeDroppedPackets(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	config, err := pgconn.ParseConfig(server.Relay(t).Address(server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	db := New(config, 1)
	defer db.Close()
	err = db.View(t.Context(), func(c *Conn) error {
		raw, err := c.raw.Conn().(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(func(fd uintptr) {
			for name, option := range map[string]int{"TCP_USER_TIMEOUT": unix.TCP_USER_TIMEOUT, "TCP_KEEPIDLE": unix.TCP_KEEPIDLE} {
				if n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil || n == 0 || n > int(unackedLimit.Milliseconds()) {
					t.Errorf("%s is %d, %v", name, n, err)
				}
			}
		})
	})
	if err != nil {
		t.Error(err)
	}
}
