package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
	"deckhand/internal/workspace/network"
)

func handleOf(id string) sandbox.Handle { return sandbox.Handle{ID: id} }

// memLedger keeps entries in memory.
type memLedger struct {
	mu      sync.Mutex
	entries map[string][]egress.Entry
}

func (l *memLedger) Record(_ context.Context, id string, entries []egress.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[string][]egress.Entry{}
	}
	for _, e := range entries {
		e.ID = int64(len(l.entries[id]) + 1)
		l.entries[id] = append(l.entries[id], e)
	}
	return nil
}

func (l *memLedger) Entries(_ context.Context, id string, before int64, limit int) ([]egress.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []egress.Entry
	for _, e := range slices.Backward(l.entries[id]) {
		if len(out) < limit && (before == 0 || e.ID < before) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (l *memLedger) Forget(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, id)
	return nil
}

func TestEgress(t *testing.T) {
	ledger := &memLedger{}
	server := egress.Policy{Mode: egress.Allowlist, Allow: []string{".example.org", "example.net"}}
	var proxy *egress.Proxy
	var policy func(context.Context, string) (egress.Policy, error)
	h := newSandboxRig(t, tune{config: func(c *Config) {
		policy = network.PolicyOf(c.Conversations.Sessions, server)
		proxy = egress.New(egress.Config{Policy: policy, Ledger: ledger})
		c.Files.Egress, c.Files.ServerPolicy = proxy, server
	}})
	t.Cleanup(func() { _ = proxy.Close() })
	id := h.create(`{}`)
	first, err := h.client.Egress(t.Context(), id, nil)
	if err != nil || first.Policy.Mode != "open" || first.Effective.Mode != "allowlist" || !slices.Equal(first.Effective.Allow, []string{".example.org", "example.net"}) || first.Next != nil || first.Requests == nil {
		t.Fatalf("%v %+v", err, first)
	}
	// A conversation can only make it stricter.
	set, err := h.client.SetEgress(t.Context(), id, "allowlist", "API.example.org", "example.com")
	if err != nil || !slices.Equal(set.Policy.Allow, []string{"api.example.org", "example.com"}) || !slices.Equal(set.Effective.Allow, []string{"api.example.org"}) {
		t.Fatalf("%v %+v", err, set)
	}
	if set, err = h.client.SetEgress(t.Context(), id, "open"); err != nil || set.Effective.Mode != "allowlist" {
		t.Errorf("%v %+v", err, set)
	}
	if set, err = h.client.SetEgress(t.Context(), id, "off"); err != nil || set.Effective.Mode != "off" || set.Effective.Allow == nil {
		t.Errorf("%v %+v", err, set)
	}
	if now, err := h.client.Egress(t.Context(), id, nil); err != nil || now.Policy.Mode != "off" {
		t.Errorf("%v %+v", err, now)
	}
	n := 0
	for _, p := range h.events(id) {
		if _, ok := p.(session.EgressSet); ok {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d changes in the log", n)
	}
	if _, err := h.client.SetEgress(t.Context(), id, "off"); err != nil || len(h.events(id)) != 3+1 {
		t.Errorf("the same once more: %v, %d events", err, len(h.events(id)))
	}
	// Another server changes it, so what is in memory here is old.
	for _, mode := range []egress.Mode{egress.Open, egress.Off} {
		if _, err := session.New(h.log).Update(t.Context(), session.ID(id), func(s session.State) ([]session.Payload, error) {
			return s.SetEgress(session.EgressSet{Mode: string(mode)})
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := policy(t.Context(), id); err != nil || got.Mode != egress.Stricter(server, egress.Policy{Mode: mode}).Mode {
			t.Errorf("%s elsewhere: %+v %v", mode, got, err)
		}
	}

	// What was asked for, page by page.
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 45 {
		e := egress.Entry{At: at.Add(time.Duration(i) * time.Second), Took: 1500 * time.Millisecond, Call: "call-1", Method: "CONNECT", Host: fmt.Sprint("h", i+1), Port: 443, Sent: 10, Received: 20, Verdict: egress.Refused, Reason: "because"}
		if err := ledger.Record(t.Context(), id, []egress.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	var hosts []string
	query := url.Values{"limit": {"20"}}
	for {
		page, err := h.client.Egress(t.Context(), id, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Requests {
			hosts = append(hosts, e.Host)
		}
		if page.Next == nil {
			break
		}
		query.Set("before", fmt.Sprint(*page.Next))
	}
	if len(hosts) != 45 || hosts[0] != "h45" || hosts[44] != "h1" {
		t.Errorf("%q", hosts)
	}
	one, err := h.client.Egress(t.Context(), id, url.Values{"limit": {"1"}, "before": {"2"}})
	want := api.EgressRequest{ID: 1, At: at, TookMS: 1500, Call: "call-1", Method: "CONNECT", Host: "h1", Port: 443, Sent: 10, Received: 20, Verdict: "refused", Reason: "because"}
	if err != nil || len(one.Requests) != 1 || one.Requests[0] != want || one.Next != nil {
		t.Errorf("%v %+v", err, one)
	}
}

func TestEgressIsChecked(t *testing.T) {
	h := newSandboxRig(t)
	id := h.create(`{}`)
	path := "/api/conversations/" + id + "/egress"
	before := len(h.events(id))
	for body, parts := range map[string][]string{
		`{}`:                               {`"mode"`, "required"},
		`{"mode":"loud"}`:                  {`"mode"`, "open, allowlist, off"},
		`{"mode":null}`:                    {`"mode"`, "null"},
		`{"mode":"open","allow":"x"}`:      {`"allow"`, "list"},
		`{"mode":"open","allow":[1]}`:      {`"allow",0`, "string"},
		`{"mode":"open","x":1}`:            {`"x"`, "Unknown field"},
		`{"mode":"open","allow":["a..b"]}`: {`"allow",0`, "a..b"},
		`{"mode":"allowlist","allow":["good.example","https://x.example/","*"]}`: {`"allow",1`, `"allow",2`, "without the scheme", `\"*\"`},
		`{"mode":"allowlist","allow":` + list(1001, `"a.example"`) + `}`:         {`"allow"`, "at most 1000"},
		`[`: {"JSON"},
	} {
		h.do("PUT", path, body).want(t, 422, parts...)
	}
	for _, query := range []string{"limit=0", "limit=101", "before=-1", "before=x"} {
		h.do("GET", path+"?"+query, "").want(t, 422, strings.Split(query, "=")[0])
	}
	if len(h.events(id)) != before {
		t.Error("something was recorded")
	}
	h.do("PUT", path, `{"mode":"allowlist","allow":null}`).want(t, 200, `"policy":{"mode":"allowlist","allow":[]}`)
	h.do("POST", path, `{"mode":"off"}`).want(t, 405, "GET, PUT")
}
