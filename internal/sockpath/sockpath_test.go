package sockpath_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sockpath"
)

// A directory whose path alone exceeds the limit of a socket's path.
func TestDeepDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sockpath.Dial(t.Context(), dir, "s"); err == nil {
		t.Error("connected to a socket that does not exist")
	}
	l, err := sockpath.Listen(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = io.WriteString(conn, "hello")
			conn.Close()
		}
		accepted <- err
	}()
	conn, err := sockpath.Dial(t.Context(), dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "s")); err != nil {
		t.Errorf("closing the listener removed the socket: %v", err)
	}
}
