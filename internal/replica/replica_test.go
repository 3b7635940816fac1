package replica

import (
	"fmt"
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
		{Flags{Roles: []string{"worker"}, NATSURL: "nats://h"}, true, "the role api is required"},
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
	for want, st := range map[home]session.State{
		{}:                    {ClaimedBy: "there.x"},
		{machine: "there"}:    {Handle: []byte(`{"driver":"local","machine":"there"}`), ClaimedBy: "here.x"},
		{machine: "old"}:      {Handle: []byte(`{"driver":"local"}`)},
		{machine: "made"}:     {Created: session.Created{Machine: "made", Forked: &session.Forked{}}, ClaimedBy: "here.x"},
		{machine: "copy"}:     {Created: session.Created{Forked: &session.Forked{}}, ClaimedBy: "copy.x"},
		{"there", "engine a"}: {Handle: []byte(`{"driver":"docker","machine":"there","engine":"engine a"}`), ClaimedBy: "here.x"},
	} {
		if got := h.of(st); got != want {
			t.Errorf("%+v is on %+v, want %+v", st, got, want)
		}
	}
}

// A workspace on a container engine is served by the server that works on the conversation, then by one that all agree on among those
// that reach the engine, then by the one on the machine.
func TestServer(t *testing.T) {
	t.Parallel()
	member := func(name string, worker bool, engines ...string) cluster.Info {
		return cluster.Info{Name: name + ".x", Machine: name, Live: true, Worker: worker, Engines: engines}
	}
	a, b, c, api, other := member("a", true, "e", "f"), member("b", true, "e"), member("c", true, "e"), member("api", false, "e"), member("other", true)
	dead := member("dead", true, "e")
	dead.Live = false
	all := []cluster.Info{a, b, c, api, other, dead}
	e := home{"dead", "e"}
	for _, holder := range []cluster.Info{a, b, c} {
		if m, live := e.server(all, session.State{ClaimedBy: holder.Name}); !live || m.Name != holder.Name {
			t.Errorf("%s works on it, and %s serves it", holder.Name, m.Name)
		}
	}
	chosen := map[string]int{}
	for i := range 300 {
		st := session.State{ID: session.ID(fmt.Sprint("s", i)), ClaimedBy: dead.Name}
		m, live := e.server(all, st)
		if again, _ := e.server([]cluster.Info{dead, c, other, b, api, a}, st); !live || again.Name != m.Name {
			t.Errorf("%s is served by %s and %s", st.ID, m.Name, again.Name)
		}
		chosen[m.Name]++
		if m.Name != c.Name { // without one, the others keep theirs
			if again, _ := e.server([]cluster.Info{a, b}, st); again.Name != m.Name {
				t.Errorf("%s moved from %s to %s", st.ID, m.Name, again.Name)
			}
		}
	}
	for _, m := range []cluster.Info{a, b, c} {
		if chosen[m.Name] < 60 {
			t.Errorf("not spread: %v", chosen)
		}
	}
	if len(chosen) != 3 {
		t.Errorf("chosen were %v", chosen)
	}
	if m, live := e.server([]cluster.Info{other, api}, session.State{}); !live || m.Name != api.Name {
		t.Errorf("only a server without agents reaches it: %s", m.Name)
	}
	if m, live := (home{"other", "e"}).server([]cluster.Info{other}, session.State{}); !live || m.Name != other.Name {
		t.Errorf("none says that it reaches the engine: %s", m.Name)
	}
	if m, live := e.server([]cluster.Info{other, dead}, session.State{}); live || m.Machine != "dead" {
		t.Errorf("none is there: %+v", m)
	}
}

func TestLightest(t *testing.T) {
	t.Parallel()
	members := []cluster.Info{{Name: "a", Worker: true, Live: true}, {Name: "b", Worker: true, Live: true}, {Name: "dead", Worker: true}, {Name: "api", Live: true}}
	var l loads
	if got := l.lightest(members, "a", 100, false, false); got != "a" {
		t.Errorf("nothing is known of others: %s", got)
	}
	if got := l.lightest(members, "api", 0, true, false); got != "a" {
		t.Errorf("one that does not work: %s", got)
	}
	l.setCount("b", 1)
	l.setCount("dead", 0)
	for mine, want := range map[int]string{0: "a", 2: "a", 3: "b"} {
		if got := l.lightest(members, "a", mine, false, false); got != want {
			t.Errorf("with %d to do: %s, want %s", mine, got, want)
		}
	}
	if got := l.lightest(members, "a", 3, false, false); got != "a" { // b was given one since
		t.Errorf("after one was given away: %s", got)
	}
	l.setCount("b", 0)
	l.setFree("b", 2, 1)
	if got := l.lightest(members, "a", 1, true, false); got != "b" {
		t.Errorf("no slot is free here: %s", got)
	}
	freeSlots := func(member string, free, kept int) {
		t.Helper()
		if f, k := l.freeSlots(member); f != free || k != kept {
			t.Errorf("%s has %d free slots and %d kept ones, want %d and %d", member, f, k, free, kept)
		}
	}
	freeSlots("b", 1, 1)
	freeSlots("dead", 0, 0)
	l.give("b")
	freeSlots("b", 0, 1)
	if got := l.lightest(members, "a", 100, false, false); got != "a" {
		t.Errorf("no slot is free there: %s", got)
	}
	if got := l.lightest(members, "a", 100, true, false); got != "b" {
		t.Errorf("no slot is free anywhere: %s", got)
	}
	l.setFree("b", 0, 1)
	if got := l.lightest(members, "a", 0, true, true); got != "b" {
		t.Errorf("a slot is kept there for users without one: %s", got)
	}
	l.give("b")
	freeSlots("b", 0, 0)
	l.known["b"] = load{at: time.Now().Add(-2 * loadStale)}
	if got := l.lightest(members, "a", 100, false, false); got != "a" {
		t.Errorf("what was heard is old: %s", got)
	}
	if l.setCount("c", 0); len(l.known) != 2 {
		t.Errorf("members that have ended are still known: %v", l.known)
	}
	if l.accepts("s") {
		t.Error("it was not asked")
	}
	if l.accept("s"); !l.accepts("s") {
		t.Error("it was asked")
	}
}
