package pg

import (
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// silence is how long packets of a connection may stay unconfirmed before the connection ends. Dropped packets cause no error,
// and TCP would retry for a quarter of an hour, with pauses of up to two minutes.
const silence = 15 * time.Second

// dial replaces pgconn's dialer, which notices a silent network after minutes.
func dial(config *pgconn.Config) {
	dialer := net.Dialer{
		Timeout:         config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 3, Count: 3},
		Control: func(network, _ string, c syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			return c.Control(func(fd uintptr) { limitSilence(int(fd)) })
		},
	}
	config.DialFunc = dialer.DialContext
}
