//go:build linux

package world

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// namespaces is where ip keeps the names of network namespaces.
const namespaces = "/run/netns"

// Network connects hosts, each a network namespace, through this process's own namespace,
// which routes between them.
type Network struct {
	own *os.File

	mu    sync.Mutex
	hosts []*Host
	cuts  []cut
}

// Host is a machine of the network.
type Host struct {
	Name string
	IP   string
	ns   *os.File
}

type cut struct{ from, to, how string }

// NewNetwork makes a network without hosts. The process must be alone in its network and mount namespaces.
func NewNetwork() (*Network, error) {
	if err := os.MkdirAll(namespaces, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", namespaces, "tmpfs", 0, "size=1m"); err != nil {
		return nil, fmt.Errorf("mount %s: %w", namespaces, err)
	}
	own, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return nil, err
	}
	return &Network{own: own}, ip("link", "set", "lo", "up")
}

// Host adds a host.
func (n *Network) Host(name string) (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := len(n.hosts) + 1
	h := &Host{Name: name, IP: fmt.Sprintf("10.77.%d.2", k)}
	link, gateway := "v"+strconv.Itoa(k), fmt.Sprintf("10.77.%d.1", k)
	for _, args := range [][]string{
		{"netns", "add", name},
		{"link", "add", link, "type", "veth", "peer", "name", "e0", "netns", name},
		{"addr", "add", gateway + "/24", "dev", link},
		{"link", "set", link, "up"},
		{"-n", name, "link", "set", "lo", "up"},
		{"-n", name, "addr", "add", h.IP + "/24", "dev", "e0"},
		{"-n", name, "link", "set", "e0", "up"},
		{"-n", name, "route", "add", "default", "via", gateway},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	var err error
	if h.ns, err = os.Open(filepath.Join(namespaces, name)); err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Ways to cut a connection.
const (
	Silent  = "blackhole"   // packets disappear
	Refused = "unreachable" // the sender is told
)

// Cut ends all traffic between two hosts until Heal.
func (n *Network) Cut(a, b *Host, how string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range []cut{{a.IP, b.IP, how}, {b.IP, a.IP, how}} {
		if err := ip("rule", "add", "pref", "10", "from", c.from, "to", c.to, how); err != nil {
			return err
		}
		n.cuts = append(n.cuts, c)
	}
	return nil
}

// Heal removes the cuts between two hosts.
func (n *Network) Heal(a, b *Host) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var failed error
	n.cuts = slices.DeleteFunc(n.cuts, func(c cut) bool {
		if (c.from != a.IP || c.to != b.IP) && (c.from != b.IP || c.to != a.IP) {
			return false
		}
		if err := ip("rule", "del", "pref", "10", "from", c.from, "to", c.to, c.how); err != nil {
			failed = err
			return false
		}
		return true
	})
	return failed
}

// within runs f on a thread that is in the namespace of the host.
func (n *Network) within(h *Host, f func() error) error {
	runtime.LockOSThread()
	if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err := f()
	if back := unix.Setns(int(n.own.Fd()), unix.CLONE_NEWNET); back != nil {
		return back // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// Start starts a program on a host.
func (n *Network) Start(h *Host, cmd *exec.Cmd) error { return n.within(h, cmd.Start) }

// Listen listens on a port of a host.
func (n *Network) Listen(h *Host, port int) (l net.Listener, err error) {
	err = n.within(h, func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(h.IP, strconv.Itoa(port)))
		return err
	})
	return l, err
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
