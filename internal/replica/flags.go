package replica

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"deckhand/internal/cluster/nats"
	"deckhand/internal/config"
)

// Flags configure a server as one of several.
type Flags struct {
	NATSURL     string   `name:"nats-url" env:"DECKHAND_NATS_URL" placeholder:"URL" help:"NATS server that connects several servers on one PostgreSQL database, such as nats://USER:PASSWORD@HOST:4222 or tls://HOST:4222?creds=FILE&ca=FILE. Default: a single server."`
	NATSURLFile string   `name:"nats-url-file" env:"DECKHAND_NATS_URL_FILE" placeholder:"FILE" help:"File with the NATS URL, for a URL with a password."`
	ReplicaAddr string   `name:"replica-addr" env:"DECKHAND_REPLICA_ADDR" placeholder:"HOST:PORT" help:"Address at which the other servers reach this one, with --nats-url. Default: a free port on the interface that leads to the NATS server."`
	Roles       []string `name:"roles" env:"DECKHAND_ROLES" default:"api,worker" placeholder:"ROLE,…" help:"Roles of this server, with --nats-url: api (only answers requests) or api,worker (also runs agents and sandboxes)."`
}

// Several reports whether the server is one of several.
func (f Flags) Several() bool { return f.NATSURL != "" || f.NATSURLFile != "" }

// worker reports whether the server runs agents.
func (f Flags) worker() bool { return slices.Contains(f.Roles, "worker") }

// address returns the address of the NATS server.
func (f Flags) address() (nats.Address, error) {
	flag, text := "--nats-url", f.NATSURL
	switch {
	case f.NATSURL != "" && f.NATSURLFile != "":
		return nats.Address{}, errors.New("use either --nats-url or --nats-url-file, not both")
	case f.NATSURLFile != "":
		b, err := os.ReadFile(f.NATSURLFile)
		if err != nil {
			return nats.Address{}, fmt.Errorf("--nats-url-file: %w", err)
		}
		flag, text = "--nats-url-file", strings.TrimSpace(string(b))
	}
	a, err := nats.ParseAddress(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return a, err
}

// CheckReplicas returns an error if the flags are invalid or do not fit the database.
func (f Flags) CheckReplicas(database func() (config.Database, error)) error {
	if len(f.Roles) == 0 { // a server that another command starts
		f.Roles = []string{"api", "worker"}
	}
	for _, r := range f.Roles {
		if r != "api" && r != "worker" {
			return fmt.Errorf("--roles: unknown role %q; use api or api,worker", r)
		}
	}
	if !slices.Contains(f.Roles, "api") {
		return errors.New("--roles: the role api is required; use api or api,worker")
	}
	if !f.Several() {
		if f.ReplicaAddr != "" || !f.worker() {
			return errors.New("--replica-addr and --roles need --nats-url")
		}
		return nil
	}
	if where, err := database(); err == nil && where.Address == "" {
		return errors.New("--nats-url needs a PostgreSQL database: set --database-url postgres://USER@HOST/DATABASE")
	}
	if f.ReplicaAddr != "" {
		if host, _, err := net.SplitHostPort(f.ReplicaAddr); err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
			return fmt.Errorf("--replica-addr %q must be HOST:PORT, with a host that the other servers can reach", f.ReplicaAddr)
		}
	}
	_, err := f.address()
	return err
}
