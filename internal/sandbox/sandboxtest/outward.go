package sandboxtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/sandbox"
)

var outwardTests = []test[Options]{
	{name: "Outward", run: outward, when: confined},
	{name: "OutwardRestart", run: outwardRestart, when: confined},
	{name: "Isolated", run: isolated, when: confined},
}

// gate is a way out that answers each line with who asked.
type gate struct {
	mu   sync.Mutex
	seen []string
}

func (g *gate) serve(_ context.Context, id, call string, c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	g.seen = append(g.seen, id+" "+call)
	g.mu.Unlock()
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(c, "%s for <%s> while <%s>\n", strings.TrimSpace(line), id, call); err != nil {
			return
		}
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// outward: what goes to the proxy reaches us, with whose it is.
func outward(t *testing.T, o Options) {
	g := &gate{}
	d := driver(t, o, g.serve)
	one, two := enter(t, o, d, sandbox.Spec{ID: "one"}), enter(t, o, d, sandbox.Spec{ID: "two"})
	dial := func(b *box) string { return fmt.Sprintf("%s dial 127.0.0.1:%d", b.program(t), sandbox.ProxyPort) }
	r := one.exec(t, sandbox.Command{ID: "call-1", Text: dial(one)}, nil)
	same(t, "answer", r.Output, "answer: hello from inside for <one> while <call-1>\n")
	r = two.exec(t, sandbox.Command{ID: "call-2", Text: dial(two)}, nil)
	same(t, "answer", r.Output, "answer: hello from inside for <two> while <call-2>\n")
	// The call is unknown when nothing runs, or more than one thing.
	p, err := one.Run(within(t), sandbox.Process{Args: strings.Fields(dial(one))}, nil)
	must(t, err)
	same(t, "answer", string(p.Stdout), "answer: hello from inside for <one> while <>\n")
	one.ok(t, "mkfifo pipe")
	other := one.start(t, sandbox.Command{ID: "call-3", Shell: "other", Text: "echo ready; cat pipe"})
	other.shows(t, "ready")
	r = one.exec(t, sandbox.Command{ID: "call-4", Text: dial(one)}, nil)
	same(t, "answer", r.Output, "answer: hello from inside for <one> while <>\n")
	one.ok(t, "echo > pipe")
	other.wait(t)
	r = one.sh(t, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do %s & done; wait", dial(one))
	same(t, "answers to twenty at once", strings.Count(r.Output, "answer: hello from inside for <one>"), 20)
	env := one.ok(t, "env")
	for _, name := range []string{"http_proxy=", "https_proxy="} {
		contains(t, "environment", env, name)
	}
}

// outwardRestart: after our restart the way out leads to the new server.
func outwardRestart(t *testing.T, o Options) {
	before, after := &gate{}, &gate{}
	b := open(t, o, sandbox.Spec{}, before.serve)
	dial := fmt.Sprintf("%s dial 127.0.0.1:%d", b.program(t), sandbox.ProxyPort)
	b.ok(t, "%s", dial)
	must(t, b.Close())
	b = attach(t, o, driver(t, o, after.serve), b.handle)
	b.ok(t, "%s", dial)
	same(t, "connections to the old server", before.count(), 1)
	same(t, "connections to the new server", after.count(), 1)
}

// isolated: there is no proxy, and no word of it.
func isolated(t *testing.T, o Options) {
	g := &gate{}
	b := open(t, o, sandbox.Spec{Network: sandbox.Isolated}, g.serve)
	if r := b.sh(t, "%s dial 127.0.0.1:%d", b.program(t), sandbox.ProxyPort); r.Exit != 1 {
		t.Errorf("something answers: %s", r.Output)
	}
	if env := b.ok(t, "env"); strings.Contains(strings.ToLower(env), "http_proxy=") {
		t.Errorf("a proxy that is not there is in the environment: %s", env)
	}
	same(t, "connections", g.count(), 0)
}
