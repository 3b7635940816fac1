package floor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/session"
)

// Rows returns a function that writes the rows of an append, with a connection and a prepared statement for each caller.
func Rows(ctx context.Context, address string, callers int) (do func(caller int) error, stop func(), err error) {
	var conns []*pgconn.PgConn
	stop = func() {
		for _, c := range conns {
			_ = c.Close(ctx)
		}
	}
	connect := func() (*pgconn.PgConn, error) {
		c, err := pgconn.Connect(ctx, address)
		if err == nil {
			conns = append(conns, c)
		}
		return c, err
	}
	c, err := connect()
	if err == nil {
		_, err = c.Exec(ctx, `CREATE TABLE raw_sessions (n bigint PRIMARY KEY, last bigint, row bytea) WITH (fillfactor = 75);
			CREATE TABLE raw_events (n bigint, last bigint, at bigint, body bytea, PRIMARY KEY (n, last))`).ReadAll()
	}
	body, encodeErr := session.Encode(session.Noted{ID: "n", Message: "A line of what happened."})
	row := make([]byte, 200) // what lists show of a session
	for i := 0; i < callers && err == nil && encodeErr == nil; i++ {
		if c, err = connect(); err != nil {
			break
		}
		if _, err = c.Exec(ctx, fmt.Sprintf("INSERT INTO raw_sessions VALUES (%d, 0, '')", i)).ReadAll(); err != nil {
			break
		}
		_, err = c.Prepare(ctx, "raw", `WITH s AS (UPDATE raw_sessions SET last = $2, row = $5 WHERE n = $1) INSERT INTO raw_events VALUES ($1, $2, $3, $4)`, nil)
	}
	if err == nil {
		err = encodeErr
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	last := make([]int64, callers)
	return func(caller int) error {
		last[caller]++
		text := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		values := [][]byte{text(int64(caller)), text(last[caller]), text(time.Now().UnixMicro()), body, row}
		_, err := conns[caller+1].ExecPrepared(ctx, "raw", values, []int16{0, 0, 0, 1, 1}, nil).Close()
		return err
	}, stop, nil
}

// Settle does what autovacuum and the checkpointer do within minutes after many rows were loaded, so that they do not
// do it during a measurement.
func Settle(ctx context.Context, address string) error {
	conn, err := pgconn.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "VACUUM (ANALYZE)").ReadAll()
	_, failed := conn.Exec(ctx, "CHECKPOINT").ReadAll()
	return errors.Join(err, failed, conn.Close(ctx))
}
