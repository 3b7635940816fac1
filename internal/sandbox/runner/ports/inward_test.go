package ports

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

func halfClose(t testing.TB, c net.Conn) {
	t.Helper()
	if err := closeWrite(c); err != nil {
		t.Error(err)
	}
}

func TestDial(t *testing.T) {
	s := newBox(t).attach(nil)
	for _, address := range []string{"127.0.0.1", "::1", "0.0.0.0", "::"} {
		t.Run(address, func(t *testing.T) {
			c, err := s.DialPort(t.Context(), listenOn(t, address, count))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(make([]byte, 3<<20)); err != nil {
				t.Fatal(err)
			}
			halfClose(t, c) // the server answers only after the end, so this travels alone
			if got, err := io.ReadAll(c); err != nil || string(got) != number(3<<20) {
				t.Errorf("%q: %v", got, err)
			}
		})
	}
}

// The other direction may end first, too.
func TestDialServerEndsFirst(t *testing.T) {
	s := newBox(t).attach(nil)
	got := make(chan int64, 1)
	greeting := strings.Repeat("hello", 100_000)
	port := listenOn(t, "127.0.0.1", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, greeting)
		_ = c.CloseWrite()
		n, _ := io.Copy(io.Discard, c)
		got <- n
	})
	c, err := s.DialPort(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != greeting {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	halfClose(t, c)
	if n := <-got; n != 1<<20 {
		t.Errorf("%d bytes arrived after the server's end", n)
	}
}

// A caller that closes must be noticed by a server that only sends, and by one
// that only waits, for which the end of file is all there is to see.
func TestDialCallerGoes(t *testing.T) {
	s := newBox(t).attach(nil)
	ended := make(chan error, 1)
	for name, serve := range map[string]func(c *net.TCPConn){
		"sending": func(c *net.TCPConn) {
			for {
				if _, err := c.Write(bytes.Repeat([]byte("x"), 10_000)); err != nil {
					ended <- err
					return
				}
			}
		},
		"waiting": func(c *net.TCPConn) {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := s.DialPort(t.Context(), listenOn(t, "127.0.0.1", serve))
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := <-ended; err == nil {
				t.Error("the server did not notice")
			}
		})
	}
}

func TestDialRefused(t *testing.T) {
	s := newBox(t).attach(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	_, err = s.DialPort(t.Context(), port)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "listens on port "+strconv.Itoa(port)) {
		t.Errorf("without a listener the error is %v", err)
	}
	for _, port := range []int{0, -1, 65536, sandbox.ProxyPort} {
		if _, err := s.DialPort(t.Context(), port); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func TestPorts(t *testing.T) {
	s := newBox(t).attach(nil)
	idle := func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }
	four, six, all := listenOn(t, "127.0.0.1", idle), listenOn(t, "::1", idle), listenOn(t, "::", idle)
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(four)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := s.Ports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{four, six, all} {
		if !slices.Contains(got, port) {
			t.Errorf("port %d is missing in %v", port, got)
		}
	}
	if own := c.LocalAddr().(*net.TCPAddr).Port; slices.Contains(got, own) {
		t.Errorf("port %d is only connected, not listening", own)
	}
	if !slices.IsSorted(got) {
		t.Errorf("%v is not in order", got)
	}
}

func TestPortsOfTables(t *testing.T) {
	dir := t.TempDir()
	if got, err := listening(dir); err != nil || got == nil || len(got) != 0 {
		t.Errorf("without tables: %v, %v", got, err)
	}
	tcp := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:0C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0100007F:9999 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0
   3: nonsense
   4: 0100007F:ZZZZ 00000000:0000 0A
`
	tcp6 := `  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000
   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000
`
	for name, text := range map[string]string{"tcp": tcp, "tcp6": tcp6} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := listening(dir); err != nil || !reflect.DeepEqual(got, []int{80, 8080}) {
		t.Errorf("%v, %v", got, err)
	}

	place := filepath.Join(dir, "browser-1", sandbox.BrowserPort)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, []byte("8080\n/devtools/browser/1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := served(dir, filepath.Join(dir, "browser-")); err != nil || !reflect.DeepEqual(got, []int{80}) {
		t.Errorf("beside a browser: %v, %v", got, err)
	}
	// What is no note of a browser's is passed over, without waiting for it.
	pipe := filepath.Join(dir, "browser-2", sandbox.BrowserPort)
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := served(dir, filepath.Join(dir, "browser-")); err != nil || !reflect.DeepEqual(got, []int{80}) {
		t.Errorf("beside a pipe: %v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sl\n0: 0100007F:1F90 00000000:0000 0A\n")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, port := range got {
			if port < 1 || port > 65535 || port == sandbox.ProxyPort {
				t.Errorf("port %d", port)
			}
		}
	})
}
