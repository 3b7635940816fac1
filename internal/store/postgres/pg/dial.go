package pg

import (
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// unackedLimit is how long sent data may stay unacknowledged before the connection ends. Dropped packets cause no error,
// and TCP would retry for a quarter of an hour, with pauses of up to two minutes.
const unackedLimit = 15 * time.Second

// dial replaces pgconn's dialer, which takes minutes to notice that packets are dropped.
func dial(config *pgconn.Config) {
	dialer := net.Dialer{
		Timeout:         config.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unackedLimit / 3, Interval: unackedLimit / 3, Count: 3},
		Control: func(network, _ string, c syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			return c.Control(func(fd uintptr) { setUserTimeout(int(fd)) })
		},
	}
	config.DialFunc = dialer.DialContext
}
