//go:build linux

package world

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stores.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// Options say what a world consists of.
type Options struct {
	// Program is the program under test.
	Program string
	// Dir is an empty folder for everything.
	Dir string
	// Store is SQLite or PostgreSQL.
	Store string
	// Servers is how many servers share the database. Several need PostgreSQL and NATSProgram.
	Servers     int
	NATSProgram string
	// Clocks lets the clocks of servers be set, which makes them a little slower.
	Clocks bool
}

// World is everything that runs.
type World struct {
	Options
	Network  *Network
	Model    *Model
	Database *Postgres // nil with SQLite
	NATS     *NATS     // nil with one server
	Servers  []*Server

	masterKey string // of all servers, if there are several
}

// New starts all parts but the servers.
func New(ctx context.Context, o Options) (*World, error) {
	w := &World{Options: o}
	var err error
	if w.Network, err = NewNetwork(); err != nil {
		return nil, err
	}
	if w.Model, err = newModel(w); err != nil {
		return nil, err
	}
	switch o.Store {
	case SQLite:
	case PostgreSQL:
		if w.Database, err = newPostgres(ctx, w); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("there is no store %q: choose sqlite or postgres", o.Store)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "config.yaml"), []byte(Config), 0o644); err != nil {
		return nil, err
	}
	if o.Servers > 1 {
		if w.Database == nil {
			return nil, errors.New("several servers need the store postgres")
		}
		var key [32]byte
		_, _ = rand.Read(key[:]) // it never fails
		w.masterKey = base64.StdEncoding.EncodeToString(key[:])
		if w.NATS, err = newNATS(ctx, w); err != nil {
			return nil, err
		}
	}
	for i := range max(o.Servers, 1) {
		s, err := w.newServer(fmt.Sprintf("server%d", i))
		if err != nil {
			return nil, err
		}
		w.Servers = append(w.Servers, s)
	}
	return w, nil
}

// newServer makes a server with its own host and disk.
func (w *World) newServer(name string) (*Server, error) {
	host, err := w.Network.Host(name)
	if err != nil {
		return nil, err
	}
	disk := filepath.Join(w.Dir, name)
	if err := newDisk(disk); err != nil {
		return nil, err
	}
	dir := filepath.Join(disk, "data")
	log, err := os.OpenFile(filepath.Join(w.Dir, name+".log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err = errors.Join(err, os.Mkdir(dir, 0o755), os.MkdirAll(filepath.Join(w.Dir, "home"), 0o755)); err != nil {
		return nil, err
	}
	s := &Server{Name: name, Host: host, Dir: dir, Base: "http://" + host.IP + ":" + serverPort, world: w, log: log}
	s.args = []string{
		"serve", "--data-dir", dir, "--addr", host.IP + ":" + serverPort, "--behind-proxy", "--rate-limit", "0",
		"--config", filepath.Join(w.Dir, "config.yaml"), "--allow-private", strings.TrimSuffix(strings.TrimPrefix(w.Model.URL, "http://"), "/v1"),
		"--sandbox", "local", "--sandbox-disk", "64M", "--suspend-after", "3s", "--titles", "task", "--model-timeout", "6s",
		"--user-budget", "100000",
	}
	if w.Database != nil {
		s.args = append(s.args, "--database-url", w.Database.URL())
	}
	if w.NATS != nil {
		s.args = append(s.args, "--nats-url", w.NATS.URL())
	}
	return s, nil
}

// environment is that of the servers: nothing in it configures them.
func (w *World) environment() []string {
	out := []string{"HOME=" + filepath.Join(w.Dir, "home")}
	if w.masterKey != "" {
		out = append(out, "DECKHAND_MASTER_KEY="+w.masterKey)
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DECKHAND_") && !strings.HasPrefix(v, "HOME=") {
			out = append(out, v)
		}
	}
	return out
}

// Stop ends the servers properly, then the rest.
func (w *World) Stop(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var all error
	for _, s := range w.Servers {
		all = errors.Join(all, s.Stop(ctx))
	}
	return all
}

// Unmount removes the disks. The processes that use them have ended.
func (w *World) Unmount() {
	for _, s := range w.Servers {
		_ = s.log.Close()
		_ = unix.Unmount(filepath.Dir(s.Dir), unix.MNT_DETACH) // the namespace goes anyway
	}
}
