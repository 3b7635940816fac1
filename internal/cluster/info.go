package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"deckhand/internal/session"
)

// Info describes a member to the others.
type Info struct {
	// Name is the name of the member, and Machine the name of its data directory. A restarted process is a new member on
	// the same machine.
	Name, Machine string
	// Host is the host name for messages, and Address is where other members reach it, "" for nowhere.
	Host, Address string
	// Dir is the path of the data directory, "" if the member is of a version that does not tell it.
	Dir string
	// Worker is true if the member runs agents.
	Worker bool
	Live   bool
	// Engines are the IDs of the container engines that it reaches.
	Engines []string
}

// Directory lists the members, including recent ones that have ended.
type Directory interface {
	Members(ctx context.Context) ([]Info, error)
}

// Roster is Leases with a Directory.
type Roster interface {
	Leases
	Directory
	// Reach says which container engines a member reaches: for life, unless it is called again.
	Reach(ctx context.Context, member string, engines []string, life time.Duration) error
}

// NameOn returns the name of a new member on a machine. The machine must not contain a dot.
func NameOn(machine, random string) string { return machine + "." + random }

// MachineOf returns the machine of a member, "" if its name is not from NameOn.
func MachineOf(member string) string {
	machine, _, ok := strings.Cut(member, ".")
	if !ok {
		return ""
	}
	return machine
}

// On returns a live member on a machine. If there is none, live is false, and found is a member that has ended, or only the
// name of the machine.
func On(members []Info, machine string) (found Info, live bool) {
	found = Info{Machine: machine, Host: machine}
	for _, m := range members {
		if m.Machine != machine {
			continue
		}
		if found = m; m.Live {
			return m, true
		}
	}
	return found, false
}

// Place says where the data directory of a member is, for messages. It names the directory, because several servers may run on one
// machine.
func (m Info) Place() string {
	dir := m.Dir
	if dir == "" {
		dir = "whose file server.name contains " + m.Machine
	}
	if m.Name == "" { // it has been forgotten
		return "in the data directory " + dir
	}
	return "on the machine " + m.Host + ", in the data directory " + dir
}

// Reaching returns the live members that reach a container engine, sorted by name: those that run agents, or the others if there are none.
func Reaching(members []Info, engine string) []Info {
	var out, workers []Info
	for _, m := range members {
		if m.Live && slices.Contains(m.Engines, engine) {
			out = append(out, m)
		}
	}
	if workers = Workers(out); len(workers) > 0 {
		return workers
	}
	return out
}

// Pick chooses one of several members for a session. All members choose the same one, and if another one joins or ends, few sessions get
// another one.
func Pick(members []Info, id session.ID) (picked Info) {
	var most uint64
	for _, m := range members {
		sum := sha256.Sum256([]byte(m.Name + " " + string(id)))
		if n := binary.BigEndian.Uint64(sum[:]); picked.Name == "" || n > most {
			picked, most = m, n
		}
	}
	return picked
}

// Workers returns the live members that run agents, sorted by name.
func Workers(members []Info) []Info {
	out := slices.DeleteFunc(slices.Clone(members), func(m Info) bool { return !m.Live || !m.Worker })
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out
}
