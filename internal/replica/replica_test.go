package replica

import (
	"strings"
	"testing"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/config"
	"deckhand/internal/session"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	both := []string{"api", "worker"}
	for _, c := range []struct {
		flags    Flags
		postgres bool
		says     string
	}{
		{Flags{}, false, ""},
		{Flags{Roles: both}, false, ""},
		{Flags{Roles: both, NATSURL: "nats://h"}, true, ""},
		{Flags{Roles: []string{"api"}, NATSURL: "nats://h", ReplicaAddr: "10.0.0.1:0"}, true, ""},
		{Flags{Roles: both, NATSURL: "nats://h"}, false, "needs a PostgreSQL database"},
		{Flags{Roles: both, NATSURL: "http://u:s3cret@h"}, true, "not valid"},
		{Flags{Roles: both, NATSURL: "nats://h", NATSURLFile: "f"}, true, "not both"},
		{Flags{Roles: both, NATSURLFile: "/missing"}, true, "--nats-url-file"},
		{Flags{Roles: both, NATSURL: "nats://h", ReplicaAddr: "0.0.0.0:1"}, true, "can reach"},
		{Flags{Roles: both, NATSURL: "nats://h", ReplicaAddr: "h"}, true, "HOST:PORT"},
		{Flags{Roles: []string{"worker"}, NATSURL: "nats://h"}, true, "every server has the role api"},
		{Flags{Roles: []string{"api", "boss"}, NATSURL: "nats://h"}, true, "boss"},
		{Flags{Roles: []string{"api"}}, true, "need --nats-url"},
		{Flags{Roles: both, ReplicaAddr: "h:1"}, true, "need --nats-url"},
	} {
		err := c.flags.CheckReplicas(func() (config.Database, error) {
			if c.postgres {
				return config.Database{Address: "postgres://h/d"}, nil
			}
			return config.Database{Path: "file"}, nil
		})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.flags, err, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password is told: %v", err)
		}
	}
}

func TestHomes(t *testing.T) {
	t.Parallel()
	h := Homes{machine: "here", first: "old"}
	for want, st := range map[string]session.State{
		"":      {ClaimedBy: "there.x"},
		"there": {Handle: []byte(`{"driver":"local","machine":"there"}`), ClaimedBy: "here.x"},
		"old":   {Handle: []byte(`{"driver":"local"}`)},
		"copy":  {Created: session.Created{Forked: &session.Forked{}}, ClaimedBy: "copy.x"},
	} {
		if got := h.of(st); got != want {
			t.Errorf("%+v is on %q, want %q", st, got, want)
		}
	}
}

func TestLightest(t *testing.T) {
	t.Parallel()
	members := []cluster.Info{{Name: "a", Worker: true, Live: true}, {Name: "b", Worker: true, Live: true}, {Name: "dead", Worker: true}, {Name: "api", Live: true}}
	var l loads
	if got := l.lightest(members, "a", 100); got != "a" {
		t.Errorf("nothing is known of others: %s", got)
	}
	if got := l.lightest(members, "api", 0); got != "a" {
		t.Errorf("one that does not work: %s", got)
	}
	l.heard("b", 1)
	l.heard("dead", 0)
	for mine, want := range map[int]string{0: "a", 2: "a", 3: "b"} {
		if got := l.lightest(members, "a", mine); got != want {
			t.Errorf("with %d to do: %s, want %s", mine, got, want)
		}
	}
	if got := l.lightest(members, "a", 3); got != "a" { // b was given one since
		t.Errorf("after one was given away: %s", got)
	}
	l.known["b"] = load{at: time.Now().Add(-2 * loadStale)}
	if got := l.lightest(members, "a", 100); got != "a" {
		t.Errorf("what was heard is old: %s", got)
	}
	if l.accepts("s") {
		t.Error("it was not asked")
	}
	if l.accept("s"); !l.accepts("s") {
		t.Error("it was asked")
	}
}

// What is sealed can be opened with the same key only.
func TestSealer(t *testing.T) {
	t.Parallel()
	one, err := newSealer([32]byte{1})
	two, err2 := newSealer([32]byte{2})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	sealed := one.seal([]byte("what the model writes"))
	if strings.Contains(string(sealed), "model") {
		t.Error("it is readable")
	}
	if plain, ok := one.open(sealed); !ok || string(plain) != "what the model writes" {
		t.Errorf("%q %v", plain, ok)
	}
	if _, ok := two.open(sealed); ok {
		t.Error("another installation reads it")
	}
	if _, ok := one.open([]byte("x")); ok {
		t.Error("nonsense is opened")
	}
}
