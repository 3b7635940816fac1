package egress_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
)

// troubled is a ledger that can be made to fail, and to wait.
type troubled struct {
	ledgertest.Memory
	fails atomic.Bool
	wait  sync.Mutex
	calls atomic.Int64
}

func (l *troubled) Record(ctx context.Context, id string, entries []egress.Entry) error {
	l.calls.Add(1)
	l.wait.Lock()
	defer l.wait.Unlock()
	if l.fails.Load() {
		return errors.New("the disk is full")
	}
	return l.Memory.Record(ctx, id, entries)
}

// The ledger stands still, and traffic does not. What does not fit is counted.
func TestSlowLedger(t *testing.T) {
	l := &troubled{}
	w := newWorld(t, egress.Policy{Mode: egress.Off}, nil, func(c *egress.Config) { c.Ledger = l })
	l.wait.Lock()
	n := 9000
	c := w.dial()
	for range n {
		c.send("GET http://slow.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
		if resp, _ := c.answer("GET"); resp.StatusCode != 403 {
			t.Fatalf("got %s", resp.Status)
		}
	}
	l.wait.Unlock()
	got := w.entries()
	lost := 0
	for _, e := range got {
		var k int
		if _, err := fmt.Sscanf(e.Reason, "%d requests are missing here", &k); err == nil {
			lost += k
		} else {
			n--
		}
	}
	if lost == 0 || n != lost {
		t.Errorf("%d of the requests are recorded, %d are missing, %d are said to be", len(got), n, lost)
	}
	if k := l.calls.Load(); k > 100 {
		t.Errorf("the ledger was written %d times", k)
	}
}

// A ledger that fails gets the same entries again, in order and once.
func TestFailingLedger(t *testing.T) {
	l := &troubled{}
	w := newWorld(t, egress.Policy{Mode: egress.Off}, nil, func(c *egress.Config) { c.Ledger = l })
	l.fails.Store(true)
	w.get("http://one.test/")
	if _, err := w.Entries(t.Context(), "box", 0, 10); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("got error %v", err)
	}
	w.get("http://two.test/")
	l.fails.Store(false)
	w.get("http://three.test/")
	var hosts []string
	for _, e := range w.entries() {
		hosts = append(hosts, e.Host)
	}
	if fmt.Sprint(hosts) != "[one.test two.test three.test]" {
		t.Errorf("got %v", hosts)
	}
}

// What is not written when the proxy is closed is written then.
func TestCloseFlushes(t *testing.T) {
	w := newWorld(t, egress.Policy{Mode: egress.Off}, nil)
	w.get("http://last.test/")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.ledger.Entries(t.Context(), "box", 0, 10); len(got) != 1 || got[0].Host != "last.test" {
		t.Errorf("got %+v", got)
	}
}
