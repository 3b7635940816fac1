package outbound

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// fakeDNS answers A queries from a list per name: each answer once, the last one repeatedly.
type fakeDNS struct {
	mu      sync.Mutex
	answers map[string][]netip.Addr
	asked   map[string]int
}

// newResolver starts a name server on loopback and returns a resolver that asks only it.
func newResolver(t *testing.T, answers map[string][]netip.Addr) (*net.Resolver, *fakeDNS) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &fakeDNS{answers: answers, asked: map[string]int{}}
	var serving sync.WaitGroup
	serving.Go(func() { d.serve(conn) })
	t.Cleanup(func() { conn.Close(); serving.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}, d
}

func (d *fakeDNS) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := d.reply(buf[:n]); reply != nil {
			conn.WriteTo(reply, from)
		}
	}
}

// reply answers the one question of a query; the rest of the query is left out.
func (d *fakeDNS) reply(query []byte) []byte {
	const header = 12
	if len(query) < header {
		return nil
	}
	var labels []string
	i := header
	for i < len(query) && query[i] != 0 {
		end := i + 1 + int(query[i])
		if end > len(query) {
			return nil
		}
		labels = append(labels, string(query[i+1:end]))
		i = end
	}
	end := i + 5 // the final zero, type and class
	if end > len(query) {
		return nil
	}
	reply := append([]byte(nil), query[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180) // an answer, recursion available
	copy(reply[4:], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	isA := binary.BigEndian.Uint16(query[i+1:]) == 1
	if addr, ok := d.next(strings.ToLower(strings.Join(labels, ".")), isA); ok {
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // that name, A, IN, TTL 0
		reply = append(reply, addr.AsSlice()...)
	}
	return reply
}

func (d *fakeDNS) next(name string, isA bool) (netip.Addr, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.answers[name]
	if !isA || len(list) == 0 {
		return netip.Addr{}, false
	}
	n := min(d.asked[name], len(list)-1)
	d.asked[name]++
	return list[n], true
}

// times is how often a name's address was asked for.
func (d *fakeDNS) times(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[name]
}
