package httpapi

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// A server that ends aborts requests that take too long.
func TestWebAborts(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan struct{})
	w := NewWeb(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(ended)
		close(started)
		<-r.Context().Done()
	}), slog.New(slog.DiscardHandler))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := w.End(time.Millisecond); err != nil {
		t.Error(err)
	}
	<-ended
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}
