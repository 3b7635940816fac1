// Package replica makes a server one of several on the same database. They share all of the work: which of them is
// alive is in the database, and NATS carries what they tell each other. A message that is lost costs time only.
//
// A workspace usually stays on the machine where it was made: Homes knows which one that is, and Peers has requests
// answered there. For a server that is alone, all of this does nothing.
package replica

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cluster"
	"deckhand/internal/cluster/nats"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// Config is what a Replica needs.
type Config struct {
	Flags
	DataDir string
	// DB is the database. If the server is not alone, it has Leases.
	DB      datadir.Meta
	Keyring *secret.Keyring
	Logger  *slog.Logger
}

// leaser is a database that servers share.
type leaser interface {
	Leases(self cluster.Info) cluster.Roster
}

// Replica is this server among the others.
type Replica struct {
	Config
	// Member is the name of this process, Self what others know of it; both are zero for a server that is alone.
	Member string
	Self   cluster.Info
	cluster.Leases
	cluster.Wakes
	roster cluster.Roster // nil for a server that is alone

	conn     *nats.Conn
	subject  func(kind string) string
	listener net.Listener
	peers    *Peers
	loads    loads
	homes    Homes
	engines  engines
	sessions *session.Sessions
	seal     nats.Seal
	closers  []func()
}

// Open joins the others: it connects to NATS, listens for requests of other servers, and chooses a name.
func Open(ctx context.Context, c Config) (*Replica, error) {
	r := &Replica{Config: c}
	if !c.Several() {
		alone := cluster.NewMemory(0, nil)
		r.Leases, r.Wakes = alone, alone
		return r, nil
	}
	db, ok := c.DB.(leaser)
	if !ok || c.DB.ReadOnly() {
		return nil, fmt.Errorf("--nats-url needs a PostgreSQL database that can be written")
	}
	machine, err := datadir.Name(c.DataDir)
	if err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	installation, err := datadir.Instance(ctx, c.DB)
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
	r.closers = append(r.closers, r.conn.Close)
	if !r.conn.Online() {
		c.Logger.Warn("NATS cannot be reached yet; servers notice each other's changes later until it can", "server", address.String())
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
	r.Self = cluster.Info{Name: r.Member, Machine: machine, Host: host, Address: r.listener.Addr().String(), Worker: c.worker()}
	r.roster = db.Leases(r.Self)
	r.Leases = r.roster
	c.Logger.Info("joined the other servers", "member", r.Member, "address", r.Self.Address, "roles", strings.Join(c.Roles, ","))
	return r, nil
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

// towards is the address of the interface that leads to one of the servers. Nothing is sent.
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

// shared is what servers keep together in the database.
type shared interface {
	access.Shared
	Lock(ctx context.Context, name, member string) (release func(), err error)
}

// Shared keeps what all servers must know of logins; nil for a server that is alone.
func (r *Replica) Shared() access.Shared {
	if s, ok := r.roster.(shared); ok {
		return s
	}
	return nil
}

// Lock returns the function that takes a lock of all servers; nil for a server that is alone.
func (r *Replica) Lock() func(ctx context.Context, name string) (release func(), err error) {
	s, ok := r.roster.(shared)
	if !ok {
		return nil
	}
	return func(ctx context.Context, name string) (func(), error) { return s.Lock(ctx, name, r.Member) }
}

// Queue is the name of a queue whose work needs the workspaces of this machine.
func (r *Replica) Queue(name string) string {
	if r.Alone() {
		return name
	}
	return name + " " + r.homes.machine
}

// Alone reports whether this is the only server.
func (r *Replica) Alone() bool { return r.roster == nil }

// Works reports whether this server runs agents.
func (r *Replica) Works() bool { return r.Alone() || r.Self.Worker }

// Close leaves. The lease was released before.
func (r *Replica) Close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	r.closers = nil
}

// members lists all members. The answer may be a second old.
func (r *Replica) members(ctx context.Context) ([]cluster.Info, error) {
	r.loads.mu.Lock()
	known, at := r.loads.members, r.loads.read
	r.loads.mu.Unlock()
	if time.Since(at) < time.Second {
		return known, nil
	}
	return r.membersNow(ctx)
}

func (r *Replica) membersNow(ctx context.Context) ([]cluster.Info, error) {
	at := time.Now()
	all, err := r.roster.Members(ctx)
	if err == nil {
		r.loads.mu.Lock()
		r.loads.members, r.loads.read = all, at
		r.loads.mu.Unlock()
	}
	return all, err
}
