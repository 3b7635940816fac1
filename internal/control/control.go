// Package control is the Unix socket in a data directory through which commands talk to the
// running server: they report changed keys, settings or configuration and wait until the server has
// reloaded them, or ask for its address or a login link. Requests need no key: only the
// owner can read the data directory, and the key stored there grants more than a login link.
package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/sockpath"
)

// Requests, and the response to notifications.
const (
	Keys     = "keys"     // keys were changed
	Settings = "settings" // settings of a user were changed; the name follows
	Address  = "address"  // base URLs of the server, local and public
	Ticket   = "ticket"   // for a login link
	Reload   = "reload"   // the configuration was changed
	LogLevel = "loglevel" // the log level; a new one may follow
	Database = "database" // the location of the database, without a password

	OK = "ok"
)

// answerTime is the timeout of a request.
const answerTime = 10 * time.Second

// socketName is the socket in the data directory.
const socketName = "control.sock"

// Listen opens the socket. The caller holds the lock of the data directory.
func Listen(dir string) (net.Listener, error) {
	// The caller holds the lock, so an existing socket is a leftover.
	_ = os.Remove(filepath.Join(dir, socketName))
	l, err := sockpath.Listen(dir, socketName)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(filepath.Join(dir, socketName), 0o600)
}

// Serve handles requests until ctx ends. A request is a word with an optional argument.
func Serve(ctx context.Context, l net.Listener, answer func(ctx context.Context, what, argument string) string) error {
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		serve(ctx, conn, answer)
	}
}

func serve(ctx context.Context, conn net.Conn, answer func(ctx context.Context, what, argument string) string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	what, argument, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	_, _ = conn.Write([]byte(answer(ctx, what, argument) + "\n"))
}

// Running reports whether a server uses this data directory right now.
func Running(dir string) bool {
	conn, err := dial(dir)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Tell waits until a running server has acted on a change. Without a running server, it does nothing.
func Tell(dir, what string) error {
	conn, err := dial(dir)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(what + "\n")); err != nil {
		return nil
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != OK+"\n" {
		return errors.New("the running server did not confirm the change")
	}
	return nil
}

// Ask asks a running server a question and returns its answer.
func Ask(dir, question string) (string, error) {
	conn, err := dial(dir)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(question + "\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Explain says why Ask could not reach the server of a data directory, and what to do.
func Explain(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("permission denied on the data directory %s: use sudo, or run the command as %s", dir, owner(dir))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server is running on the data directory %s: start one with deckhand serve", dir)
	}
	return fmt.Errorf("the server on the data directory %s does not respond: %w", dir, err)
}

// owner describes the user who runs the server of a data directory.
func owner(dir string) string {
	info, err := os.Stat(filepath.Join(dir, socketName))
	if err != nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return "the user who runs the server"
	}
	id := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username + ", who runs the server"
	}
	return "the user with the UID " + id + ", who runs the server"
}

// dial connects to the server of a data directory.
func dial(dir string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := sockpath.Dial(ctx, dir, socketName)
	if op := (*net.OpError)(nil); errors.As(err, &op) { // its path may be that of a file descriptor
		err = fmt.Errorf("%s: %w", filepath.Join(dir, socketName), op.Err)
	}
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	return conn, nil
}
