package sandboxtest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

// onlyLoopback: there is no other interface, so nothing can leave.
func onlyLoopback(t *testing.T, p *prison) {
	same(t, "the interfaces inside", p.ok(t, "%s interfaces", p.h), "lo")
	routes := p.ok(t, "cat /proc/net/route | tail -n +2; grep -v ' lo$' /proc/net/ipv6_route || true")
	same(t, "the routes inside", strings.TrimSpace(routes), "")
}

// bait listens on this machine and checks that no connection came.
type bait struct {
	net.Listener
	came chan string
}

func lay(t *testing.T, network, address string) *bait {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Logf("no bait on %s: %v", address, err)
		return nil
	}
	b := &bait{Listener: l, came: make(chan string, 100)}
	go func() {
		defer close(b.came)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			b.came <- line
			c.Close()
		}
	}()
	t.Cleanup(func() {
		// The test connects itself: an earlier connection is in front of it.
		c, err := net.Dial(network, l.Addr().String())
		must(t, err)
		fmt.Fprintln(c, "it is us")
		if first := <-b.came; first != "it is us\n" {
			t.Errorf("a connection to %s from inside said %q", l.Addr(), first)
		}
		c.Close()
		l.Close()
		for range b.came {
		}
	})
	return b
}

// hostNetwork: what listens on this machine cannot be reached.
func hostNetwork(t *testing.T, p *prison) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "127.5.5.5:0"} {
		b := lay(t, "tcp", address)
		if b == nil {
			continue
		}
		_, port, _ := net.SplitHostPort(b.Addr().String())
		targets := []string{"127.0.0.1", "[::1]", "localhost", "0.0.0.0", "127.5.5.5", "[::ffff:127.0.0.1]", "host.docker.internal", "gateway.docker.internal"}
		addrs, err := net.InterfaceAddrs()
		must(t, err)
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() {
				targets = append(targets, "["+ip.IP.String()+"]")
			}
		}
		for _, host := range targets {
			p.refused(t, "dial %s:%s", host, port)
		}
	}
}

// otherNetwork: nor what listens in a neighbour.
func otherNetwork(t *testing.T, p *prison) {
	port, _ := p.other.listen(t, "0.0.0.0:0")
	for _, host := range []string{"127.0.0.1", "[::1]", "0.0.0.0", "localhost"} {
		p.refused(t, "dial %s:%d", host, port)
	}
	p.other.ok(t, "%s dial 127.0.0.1:%d", p.other.program(t), port) // a control: there it answers
	mine, err := p.Ports(within(t))
	must(t, err)
	for _, n := range mine {
		if n == port {
			t.Error("the neighbour's port is listed as ours")
		}
	}
}

// outsideNetwork: there is no way to any address, name or datagram. onlyLoopback
// has shown that none of this can leave.
func outsideNetwork(t *testing.T, p *prison) {
	for _, address := range []string{
		"169.254.169.254:80", "169.254.170.2:80", "100.100.100.200:80", "192.0.2.1:443", "10.0.0.1:80", "172.17.0.1:80", "192.168.0.1:80", "[fd00:ec2::254]:80",
		"[2001:db8::1]:443", "[fe80::1%lo]:80", "255.255.255.255:80", "[64:ff9b::a9fe:a9fe]:80", "224.0.0.1:80",
	} {
		p.unreachable(t, "dial %s", address)
		p.unreachable(t, "dial %s udp", address)
	}
	for _, name := range []string{"example.com", "metadata.google.internal", "host.docker.internal"} {
		p.refused(t, "resolve %s", name)
	}
	for _, server := range []string{"8.8.8.8:53", "127.0.0.53:53", "127.0.0.11:53"} {
		p.refused(t, "dial %s", server)
	}
}

// unreachable is refused, and at once: what takes long has left.
func (p *prison) unreachable(t *testing.T, format string, args ...any) {
	t.Helper()
	out := p.refused(t, format, args...)
	for _, word := range []string{"ENETUNREACH", "EHOSTUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL", "EINVAL", "ECONNREFUSED"} {
		if strings.Contains(out, "refused: "+word) {
			return
		}
	}
	t.Errorf("%s: %s", fmt.Sprintf(format, args...), out)
}

// abstractSockets have no file that could be hidden; they belong to the network.
func abstractSockets(t *testing.T, p *prison) {
	name := "@" + p.token
	if lay(t, "unix", name) == nil {
		t.Fatal("this machine has no abstract sockets")
	}
	p.refused(t, "unix %s", name)
	if out := p.ok(t, "%s sockets", p.h); strings.Contains(out, p.token) {
		t.Errorf("a socket of this machine can be seen: %s", out)
	}
}
