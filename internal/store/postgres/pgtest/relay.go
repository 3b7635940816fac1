package pgtest

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Relay is a TCP port that forwards to the server. It can pause, like a network that drops all packets.
type Relay struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	changed sync.Cond
	paused  bool
	closed  bool
	conns   []net.Conn
	running sync.WaitGroup
}

// Relay starts a relay to the server.
func (s *Server) Relay(t testing.TB) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, to: filepath.Join(s.Dir, ".s.PGSQL."+port)}
	r.changed.L = &r.mu
	r.running.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Address is the address of a database through the relay.
func (r *Relay) Address(address string) string {
	host, port, _ := net.SplitHostPort(r.listener.Addr().String())
	path, query, _ := strings.Cut(strings.TrimPrefix(address, "postgres:///"), "?")
	q, _ := url.ParseQuery(query)
	q.Set("host", host)
	q.Set("port", port)
	q.Set("sslmode", "disable")
	return "postgres:///" + path + "?" + q.Encode()
}

// Pause keeps all connections open and accepts new ones, but forwards nothing until Resume is called. Neither side gets an error.
func (r *Relay) Pause() { r.set(true) }

// Resume ends a pause. Data that was sent during the pause arrives.
func (r *Relay) Resume() { r.set(false) }

func (r *Relay) set(paused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = paused
	r.changed.Broadcast()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", r.to)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		r.running.Go(func() { r.forward(client, server) })
		r.running.Go(func() { r.forward(server, client) })
	}
}

// forward copies one direction of a connection.
func (r *Relay) forward(from, to net.Conn) {
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		r.mu.Lock()
		for r.paused && !r.closed {
			r.changed.Wait()
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (r *Relay) close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.changed.Broadcast()
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}
