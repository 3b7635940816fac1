package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A stream over HTTP/1.1 leaves net/http, whose buffers cost more than following does. It
// ends with the handler all the same, and its request is logged and counted then. Streams
// over other versions stay where they are.
func TestStreamsLeaveTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, path string
		detached      bool
	}{
		{"1.1", "events/stream", true},
		{"1.0", "events/stream", false},
		{"1.1", "", true}, // the list
	} {
		t.Run(c.version+"/"+c.path, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var counted []Finished
			ending, end := make(chan struct{}), make(chan struct{})
			r := newRig(t, tune{config: func(c *Config) {
				c.Telemetry.Observe = func(f Finished) {
					if f.Stream {
						close(ending)
						<-end
						mu.Lock()
						defer mu.Unlock()
						counted = append(counted, f)
					}
				}
			}})
			r.settle("ada")
			id := r.create(`{}`)
			path := toStream
			if c.path != "" {
				path = toCreate + "/" + id + "/" + c.path
			}
			hijacked := make(chan struct{}, 1)
			server := httptest.NewUnstartedServer(r.api)
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateHijacked {
					hijacked <- struct{}{}
				}
			}
			server.Start()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/%s\r\nHost: %s\r\nX-Session-API-Key: %s\r\n\r\n", path, c.version, conn.RemoteAddr(), r.keys["ada"])
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusOK || res.Header.Get("X-Request-Id") == "" || res.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("%+v", res)
			}
			body := bufio.NewReader(res.Body)
			for line := ""; !strings.HasPrefix(line, "data: "); {
				if line, err = body.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if c.detached {
				<-hijacked
			}
			mu.Lock()
			if len(counted) > 0 || strings.Contains(r.logs.String(), `"path":"`+path+`"`) {
				t.Errorf("the request has ended before its stream: %+v", counted)
			}
			mu.Unlock()
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				r.api.Close()
				server.Close() // which waits for streams that it knows of
			}()
			<-ending
			select {
			case <-closed:
				t.Error("closed before the stream's end")
			default:
			}
			close(end)
			if _, err := io.Copy(io.Discard, body); err != nil {
				t.Errorf("the body ended with %v", err)
			}
			<-closed
			mu.Lock()
			defer mu.Unlock()
			if len(counted) != 1 || counted[0].Status != http.StatusOK {
				t.Errorf("counted %+v", counted)
			}
			line := ""
			for l := range strings.Lines(r.logs.String()) {
				if strings.Contains(l, `"path":"`+path+`"`) {
					line += l
				}
			}
			for _, part := range []string{`"method":"GET"`, `"status":200`, `"user":"ada"`, res.Header.Get("X-Request-Id")} {
				if !strings.Contains(line, part) {
					t.Errorf("the log lacks %s: %s", part, line)
				}
			}
			if c.path != "" && !strings.Contains(line, `"session":"`+id+`"`) {
				t.Errorf("the log lacks the conversation: %s", line)
			}
			if !c.detached && len(hijacked) > 0 {
				t.Error("the connection was taken over")
			}
		})
	}
}

// A stream that is about to be detached when the handler closes ends by itself.
func TestStreamAfterClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	r.api.Close()
	res, err := r.client.Do(r.request("GET", toCreate+"/"+id+"/events/stream", nil, "X-Session-API-Key", r.keys["ada"]))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
}
