package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/soak"
)

// A second signal ends a server that waits for a request.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	b, cmd := spawn(t, t.TempDir())
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/conversations HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", b.key)
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it waits for the body
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the server to stop", func() bool { return strings.Contains(b.logs.String(), "stopping") })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	until(t, "the server to end", func() bool {
		select {
		case <-ended:
			return true
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return false
		}
	})
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("%v, wanted an end by the signal: %s", cmd.ProcessState, b.logs)
	}
}

// A server whose log no program reads ends.
func TestStopWithoutReaderOfLog(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts a server as a process")
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	size, err := unix.FcntlInt(writes.Fd(), unix.F_GETPIPE_SZ, 0) // Fd makes writing to the pipe block
	if err == nil {
		_, err = writes.Write(make([]byte, size))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: t.TempDir(), logs: &syncBuffer{}}
	cmd := process(append([]string{"serve", "--data-dir", b.dir, "--addr", "127.0.0.1:0"}, plainSandbox(t, nil)...)...)
	cmd.Stderr = writes
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	writes.Close()
	if err != nil {
		t.Fatal(err)
	}
	b.readGreeting(out)
	late := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
