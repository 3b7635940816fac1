package activity

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"deckhand/internal/session"
)

// scrape is the metrics as text.
func scrape(a *Activity) string {
	r := prometheus.NewRegistry()
	r.MustRegister(a.Collectors()...)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w.Body.String()
}

func batch(id session.ID, all ...session.Payload) session.Batch {
	b := session.Batch{ID: id}
	for _, p := range all {
		b.Events = append(b.Events, session.Event{Payload: p})
	}
	return b
}

// What the events say is counted by provider, and the first part of a reply ends the wait for it.
func TestActivity(t *testing.T) {
	t.Parallel()
	a := New(func(model string) string { p, _, _ := strings.Cut(model, "/"); return p })
	now := time.Now()
	at := func(after time.Duration, b session.Batch) { a.stored(b, now.Add(after), now.Add(after)) }
	at(0, batch("one", session.ModelAsked{Call: "c1", Model: "acme/m"}))
	a.mu.Lock()
	a.began(a.open["one"], now.Add(700*time.Millisecond))
	a.mu.Unlock()
	at(4*time.Second, batch("one", session.ModelAnswered{Call: "c1", Usage: session.Usage{Input: 10, Output: 3}}, session.ToolReturned{Outcome: session.Succeeded}, session.TurnEnded{State: session.AgentAwaitingUser}))
	at(0, batch("two", session.ModelAsked{Call: "c2", Model: "acme/m"}))
	at(time.Second, batch("two", session.ModelFailed{Call: "c2", Class: "auth"}, session.TurnEnded{State: session.AgentError}))
	at(0, batch("three", session.ModelAsked{Call: "c3", Model: "acme/m"}))
	at(0, batch("three", session.ModelFailed{Call: "c3", Class: "made up by a user"}, session.Stopped{}))
	text := scrape(a)
	for _, line := range []string{
		`deckhand_model_calls_total{provider="acme",result="ok"} 1`, `deckhand_model_calls_total{provider="acme",result="auth"} 1`, `deckhand_model_calls_total{provider="acme",result="cancelled"} 1`,
		`deckhand_model_first_token_seconds_bucket{provider="acme",le="0.5"} 0`, `deckhand_model_first_token_seconds_bucket{provider="acme",le="1"} 1`,
		`deckhand_model_call_duration_seconds_bucket{provider="acme",le="3"} 0`, `deckhand_model_call_duration_seconds_bucket{provider="acme",le="5"} 1`,
		`deckhand_model_tokens_total{direction="input",provider="acme"} 10`, `deckhand_turns_total{provider="acme",result="ok"} 1`, `deckhand_turns_total{provider="acme",result="error"} 1`,
		`deckhand_tool_calls_total{result="ok"} 1`, `deckhand_store_append_duration_seconds_count 6`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if p := a.Providers(); len(p) != 1 || p[0].Class != "auth" || p[0].Calls != 2 || p[0].Fails != 1 || len(a.open) != 0 {
		t.Errorf("providers %+v, %d sessions are remembered", p, len(a.open))
	}
}

// Hosts that fail or cannot be reached are told apart from those that refuse a user, and their number is bounded.
func TestHosts(t *testing.T) {
	t.Parallel()
	status := 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	var h Hosts
	c := h.Client(server.Client())
	for _, step := range []struct {
		status int
		want   string
	}{{200, ""}, {500, "server"}, {401, ""}} {
		status = step.status
		response, err := c.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if all := h.List(); len(all) != 1 || all[0].Problem != step.want {
			t.Errorf("after %d: %+v", step.status, all)
		}
	}
	server.Close()
	if _, err := c.Get(server.URL); err == nil || h.List()[0].Problem != "network" {
		t.Errorf("%v, %+v", err, h.List())
	}
	for i := range 2 * maxHosts {
		h.record(strings.Repeat("x", i), "", time.Now())
	}
	if n := len(h.List()); n != maxHosts {
		t.Errorf("%d hosts are remembered", n)
	}
}
