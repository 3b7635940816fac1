// Package replica lets several servers share a database. Leases in the database tell which servers are alive, and NATS
// carries notifications between them. A lost notification only costs time.
//
// A workspace stays on the machine where it was created: Homes finds that machine, and Peers forwards requests to it.
// On a single server, all of this does nothing.
package replica

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cluster"
	"deckhand/internal/cluster/nats"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// Config configures a Replica.
type Config struct {
	Flags
	DataDir string
	// DB is the database. With several servers, it must have Leases.
	DB      datadir.Meta
	Keyring *secret.Keyring
	Logger  *slog.Logger
}

// leaser is a database that several servers can share.
type leaser interface {
	Leases(self cluster.Info) cluster.Roster
	// CopyID returns an ID that a database gets when it is filled with the data of another one, "" for all others.
	CopyID(ctx context.Context) (string, error)
}

// Replica is this server, as one of several or alone.
type Replica struct {
	Config
	// Member is the name of this process, and Self what the others know about it. Both are zero for a single server.
	Member string
	Self   cluster.Info
	cluster.Leases
	cluster.Wakes
	roster cluster.Roster // nil for a single server
	held   *lease         // wraps the roster

	conn     *nats.Conn
	subject  func(kind string) string
	listener net.Listener
	peers    *Peers
	loads    loads
	homes    Homes
	engines  engines
	sessions *session.Sessions
	seal     nats.Seal
	sent     atomic.Int64 // number of the last message
	closers  []func()
}

// Open connects to NATS, listens for requests of other servers, and chooses a member name. Without --nats-url, it returns
// the Replica of a single server.
func Open(ctx context.Context, c Config) (*Replica, error) {
	r := &Replica{Config: c}
	if !c.Several() {
		alone := cluster.NewMemory(0, nil)
		r.Leases, r.Wakes = alone, alone
		return r, nil
	}
	db, ok := c.DB.(leaser)
	if !ok || c.DB.ReadOnly() {
		return nil, errors.New("--nats-url needs a writable PostgreSQL database")
	}
	machine, err := datadir.Name(c.DataDir)
	if err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	installation, err := r.installation(ctx, db)
	if err != nil {
		return nil, err
	}
	if err := r.homes.open(ctx, c.DB, machine); err != nil {
		return nil, err
	}
	r.Member = cluster.NameOn(machine, rand.Text()[:10])
	if r.conn, err = nats.Connect(ctx, address, "deckhand "+r.Member, c.Logger); err != nil {
		return nil, fmt.Errorf("--nats-url: %w", err)
	}
	r.closers = append(r.closers, r.leaveNATS)
	if !r.conn.Online() {
		c.Logger.Warn("cannot reach NATS; until it is reachable, servers notice each other's changes late", "server", address.String())
	}
	if err := r.listen(ctx, machine, address.String()); err != nil {
		r.Close()
		return nil, err
	}
	wakes := nats.Wakes{Conn: r.conn, Installation: installation, Seal: r.seal}
	r.Wakes, r.subject = wakes, wakes.Subject
	host, err := os.Hostname()
	if err != nil {
		host = machine
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		dir = c.DataDir
	}
	r.Self = cluster.Info{Name: r.Member, Machine: machine, Host: host, Dir: dir, Address: r.listener.Addr().String(), Worker: c.worker()}
	r.roster = db.Leases(r.Self)
	r.held = &lease{Leases: r.roster}
	r.Leases = r.held
	c.Logger.Info("running as one of several servers", "member", r.Member, "address", r.Self.Address, "roles", strings.Join(c.Roles, ","))
	return r, nil
}

// installation returns a name for the messages of all servers on a database. A copy has the keys of its original, so only the name keeps
// them from receiving each other's messages.
func (r *Replica) installation(ctx context.Context, db leaser) (string, error) {
	instance, err := datadir.Instance(ctx, r.DB)
	if err != nil {
		return "", err
	}
	id, err := db.CopyID(ctx)
	if err != nil || id == "" {
		return instance, err
	}
	return instance + "-" + id, nil
}

// listen opens the listener for other servers.
func (r *Replica) listen(ctx context.Context, machine, server string) error {
	key, err := datadir.Key(ctx, r.DB, r.Keyring, "replica_key", "replica key")
	if err != nil {
		return err
	}
	if r.peers, err = newPeers(r, key, machine); err != nil {
		return err
	}
	if r.seal, err = nats.NewSeal(key); err != nil {
		return err
	}
	address := r.ReplicaAddr
	if address == "" {
		address = net.JoinHostPort(towards(server), "0")
	}
	if r.listener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("--replica-addr: cannot listen on %s: %w", address, err)
	}
	r.closers = append(r.closers, func() { r.listener.Close() })
	return nil
}

// towards returns the local address of the interface that leads to the first server. It sends nothing.
func towards(servers string) string {
	first, _, _ := strings.Cut(servers, ",")
	c, err := net.DialTimeout("udp", first, time.Second)
	if err != nil {
		return "127.0.0.1"
	}
	defer c.Close()
	host, _, _ := net.SplitHostPort(c.LocalAddr().String())
	return host
}

// shared is the state in the database that all servers use.
type shared interface {
	access.Shared
	Lock(ctx context.Context, name, member string) (release func(), err error)
}

// Shared returns the store for login state of all servers; nil for a single server.
func (r *Replica) Shared() access.Shared {
	if s, ok := r.roster.(shared); ok {
		return s
	}
	return nil
}

// Lock returns a function that takes a lock among all servers; nil for a single server.
func (r *Replica) Lock() func(ctx context.Context, name string) (release func(), err error) {
	s, ok := r.roster.(shared)
	if !ok {
		return nil
	}
	return func(ctx context.Context, name string) (func(), error) { return s.Lock(ctx, name, r.Member) }
}

// Queue returns the name of this machine's part of a queue whose work needs local workspaces.
func (r *Replica) Queue(name string) string {
	if r.Alone() {
		return name
	}
	return name + " " + r.homes.machine
}

// Alone reports whether this is the only server.
func (r *Replica) Alone() bool { return r.roster == nil }

// NATS returns a function that returns the version of the NATS server, "" without a connection; nil for a single server.
func (r *Replica) NATS() func() string {
	if r.conn == nil {
		return nil
	}
	return r.conn.Version
}

// Works reports whether this server runs agents.
func (r *Replica) Works() bool { return r.Alone() || r.Self.Worker }

// Close closes the connections and the listener. Release the lease before.
func (r *Replica) Close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	r.closers = nil
}

// flushTime is how long sending the last messages may take. One of them says that this server has left.
const flushTime = time.Second

// leaveNATS sends what is pending and closes the connection.
func (r *Replica) leaveNATS() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = r.conn.Flush(ctx) // without a connection, the others notice that the lease has ended
	r.conn.Close()
}

// members lists all members. The result may be a second old.
func (r *Replica) members(ctx context.Context) ([]cluster.Info, error) {
	r.loads.mu.Lock()
	known, at := r.loads.members, r.loads.read
	r.loads.mu.Unlock()
	if time.Since(at) < time.Second {
		return known, nil
	}
	return r.membersNow(ctx)
}

// membersNow lists all members, as of now.
func (r *Replica) membersNow(ctx context.Context) ([]cluster.Info, error) {
	at := time.Now()
	all, err := r.roster.Members(ctx)
	if err == nil {
		if slices.ContainsFunc(all, func(m cluster.Info) bool { return m.Name == r.Member && !m.Live }) {
			r.held.interrupt() // for example after the machine was suspended
		}
		r.loads.mu.Lock()
		r.loads.members, r.loads.read = all, at
		r.loads.mu.Unlock()
	}
	return all, err
}
