package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The control socket is how a command beside a running server says "keys have
// changed", or "the settings of NAME have", and hears that the server acted on it,
// or asks where the server is and for a login link. It lies in the data dir, which
// only the owner can enter, beside the key that opens more than such a link.

const controlName = "control.sock"

// shortPath names a file in dir through an open directory, because the path of
// a socket must be shorter than many a data dir.
func shortPath(dir string) (path string, done func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), controlName), func() { f.Close() }, nil
}

func listenControl(dir string) (net.Listener, error) {
	path, done, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	// We hold the data dir's lock, so a socket that is there belongs to nobody.
	_ = os.Remove(filepath.Join(dir, controlName))
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the short path is gone by then
	return l, os.Chmod(filepath.Join(dir, controlName), 0o600)
}

func (s *server) serveControl(ctx context.Context, l net.Listener) error {
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.obey(ctx, conn)
	}
}

func (s *server) obey(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	answer := "unknown\n"
	switch what, user, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); what {
	case "keys":
		if answer = "ok\n"; s.data.gate.Refresh(ctx) != nil {
			answer = "failed\n"
		}
	case "settings":
		s.brain.settings.Forget(user)
		answer = "ok\n"
	case "address":
		answer = s.local + " " + s.brain.public + "\n"
	case "ticket":
		answer = s.invite(ctx) + "\n"
	}
	_, _ = conn.Write([]byte(answer))
}

// serverRuns reports whether a server uses this data dir right now.
func serverRuns(dir string) bool {
	path, done, err := shortPath(dir)
	if err != nil {
		return false
	}
	defer done()
	conn, err := net.DialTimeout("unix", path, 2*time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// tellServer waits until a running server has acted on changed keys.
func tellServer(dir string) error {
	if tell(dir, "keys") != nil {
		return errors.New("the change is stored; the running server did not confirm it, but will apply it within a second")
	}
	return nil
}

// tell waits until a running server has acted on a change. Without a server there is nobody to tell.
func tell(dir, what string) error {
	path, done, err := shortPath(dir)
	if err != nil {
		return nil
	}
	defer done()
	conn, err := net.DialTimeout("unix", path, 2*time.Second)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(what + "\n")); err != nil {
		return nil
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "ok\n" {
		return errors.New("the running server did not confirm the change")
	}
	return nil
}
