package httpapi

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
)

// Requests that net/http refuses by itself are answered like all others: JSON with a
// request id, over TLS and without it.
func TestMalformedHTTPIsAnsweredInOurShape(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(certified.Close)
	trust := certified.Client().Transport.(*http.Transport).TLSClientConfig
	serve := func(wrap func(net.Listener) net.Listener) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		web := &http.Server{Handler: r.api, MaxHeaderBytes: 64 << 10}
		var connections sync.WaitGroup
		web.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed, http.StateHijacked:
				connections.Done()
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = web.Serve(wrap(l)) }()
		t.Cleanup(func() {
			web.Close()
			<-done
			connections.Wait() // one that was refused lingers for half a second
		})
		return l.Addr().String()
	}
	plainly := serve(Listen)
	secretly := serve(func(l net.Listener) net.Listener {
		return ListenTLS(l, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
	})
	dial := map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", plainly) },
		"TLS": func() (net.Conn, error) {
			c := trust.Clone()
			c.ServerName, c.NextProtos = "example.com", []string{"http/1.1"}
			return tls.Dial("tcp", secretly, c)
		},
	}
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"a percent sign":       {"GET /api/conversations/% HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
		"a negative length":    {"POST /api/settings HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400},
		"no host":              {"GET / HTTP/1.1\r\n\r\n", 400},
		"oversized headers":    {"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", 431},
		"an unknown encoding":  {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: zip\r\n\r\n", 501},
		"an unknown version":   {"GET / HTTP/3.7\r\nHost: localhost\r\n\r\n", 505},
		"what is fine reaches": {"GET /api/none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401},
	} {
		for over, open := range dial {
			t.Run(name+" over "+over, func(t *testing.T) {
				conn, err := open()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, c.request) // it may be refused before its end
				inShape(t, conn, c.status)
			})
		}
	}
	t.Run("plain HTTP to TLS", func(t *testing.T) {
		conn, err := net.Dial("tcp", secretly)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		inShape(t, conn, 400)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		c := trust.Clone()
		c.ServerName = "example.com"
		transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get("https://" + secretly + "/alive")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != 200 || res.TLS == nil {
			t.Errorf("%s %d", res.Proto, res.StatusCode)
		}
	})
}

// inShape reads an answer and checks its shape.
func inShape(t *testing.T, conn net.Conn, status int) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status || res.Header.Get("X-Request-Id") == "" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	var got api.Problem
	if json.Unmarshal(body, &got) != nil || status != 401 && (got.Error == "" || got.MsgID == "") {
		t.Errorf("%s", body)
	}
}
