package pgtest

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Relay is a TCP port that leads to the server, through a network that can go silent.
type Relay struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	changed sync.Cond
	silent  bool
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

// Silence keeps all connections open and accepts new ones, but forwards nothing until Forward is called. Neither side gets an error.
func (r *Relay) Silence() { r.set(true) }

// Forward ends a silence. Data that was sent during it arrives.
func (r *Relay) Forward() { r.set(false) }

func (r *Relay) set(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
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
		r.running.Go(func() { r.pass(client, server) })
		r.running.Go(func() { r.pass(server, client) })
	}
}

// pass forwards one direction of a connection.
func (r *Relay) pass(from, to net.Conn) {
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		r.mu.Lock()
		for r.silent && !r.closed {
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
