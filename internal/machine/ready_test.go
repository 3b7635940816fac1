package machine

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestNotifyReady(t *testing.T) {
	dir, err := os.MkdirTemp("", "n") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := NotifyReady(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _, err := l.ReadFrom(b)
	if err != nil || string(b[:n]) != "READY=1" || os.Getenv("NOTIFY_SOCKET") != "" {
		t.Errorf("systemd got %q, %v", b[:n], err)
	}
	if err := NotifyReady(); err != nil { // not started by systemd
		t.Error(err)
	}
}
