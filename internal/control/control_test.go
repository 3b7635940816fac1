package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	_, none := Ask(filepath.Join(dir, "none"), Address)
	for want, err := range map[string]error{
		"no server is running on the data directory " + dir + ": start one with deckhand serve":                                       none,
		"no server is running on the data directory " + dir + ": start one with deckhand serve ":                                      syscall.ECONNREFUSED,
		"permission denied on the data directory " + dir + ": use sudo, or run the command as the user " + me.Username + ", who runs": fmt.Errorf("connect: %w", fs.ErrPermission),
		"the server on the data directory " + dir + " does not respond: i/o timeout":                                                  errors.New("i/o timeout"),
	} {
		if got := Explain(dir, err).Error(); !strings.Contains(got, strings.TrimSpace(want)) {
			t.Errorf("%v: %s", err, got)
		}
	}
	if got := owner(filepath.Join(dir, "none")); got != "the user who runs the server" {
		t.Error(got)
	}
}
