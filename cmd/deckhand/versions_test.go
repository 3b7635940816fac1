package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"deckhand/api/health"
	"deckhand/internal/sandbox/docker/dockertest"
)

// partsByID returns the health of a server and its parts. Of several with the same ID, it has the last.
func (b *box) partsByID() (health.ServerHealth, map[string]health.HealthPart) {
	b.t.Helper()
	h, err := b.client.ServerHealth(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	parts := map[string]health.HealthPart{}
	for _, p := range h.Parts {
		parts[p.ID] = p
	}
	return h, parts
}

// The health of a server has the versions of the database, Go and the operating system.
func TestVersions(t *testing.T) {
	t.Parallel()
	h, parts := serve(t, "").partsByID()
	system, err := exec.Command("uname", "-sr").Output()
	if err != nil || h.System != strings.TrimSpace(string(system)) || h.GoVersion != runtime.Version() {
		t.Errorf("system %q, Go %q; uname says %s, %v", h.System, h.GoVersion, system, err)
	}
	if v := parts["database"].Version; !strings.HasPrefix(v, "SQLite 3.") {
		t.Errorf("the database is %q", v)
	}
	if p, there := parts["nats"]; there {
		t.Errorf("a single server shows NATS: %+v", p)
	}
}

// A single container engine is shown by the name of its driver, with its version.
func TestVersionOfTheEngine(t *testing.T) {
	t.Parallel()
	b := serve(t, "", append(withSandbox(t, "docker"), "--sandbox-image", dockertest.BusyboxImage(t), "--sandbox-pull", "never")...)
	until(t, "the engine has a version", func() bool {
		_, parts := b.partsByID()
		p := parts["sandbox"]
		return p.Name == "docker" && strings.HasPrefix(p.Version, "Docker ")
	})
}

// Each of several servers shows its connection to NATS.
func TestVersionsOfReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	_, parts := f.boxes[0].partsByID()
	if v := parts["database"].Version; !strings.HasPrefix(v, "PostgreSQL 1") {
		t.Errorf("the database is %q", v)
	}
	if p := parts["nats"]; p.Status != "ok" || !strings.HasPrefix(p.Version, "NATS 2.") {
		t.Errorf("NATS is shown as %+v", p)
	}
	f.nats.Kill()
	until(t, "the loss of NATS is shown", func() bool {
		_, parts := f.boxes[0].partsByID()
		return parts["nats"].Problem == "nats_offline" && parts["nats"].Version == ""
	})
}
