package config

import (
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
)

// The server says why it cannot listen on an address, and what to do.
func TestListenError(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, inUse := net.Listen("tcp", busy.Addr().String())
	for want, err := range map[string]error{
		"another program uses this port; stop it, or choose another address with --addr": inUse,
		"permission denied; choose a port of 1024 or more":                               fs.ErrPermission,
		"choose another address with --addr":                                             syscall.EADDRNOTAVAIL,
	} {
		if got := ListenError("127.0.0.1:80", err).Error(); !strings.HasPrefix(got, "cannot listen on 127.0.0.1:80: ") || !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
