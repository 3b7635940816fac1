// Package activity measures what agents do, from the events that are stored and the fragments of replies that are
// shown: model calls, turns and tool calls, and how long storing takes. Labels are few whatever users do: no metric
// has a user, a conversation or the name of a model.
package activity

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// Deltas takes fragments of replies, as the agent loop gives them.
type Deltas interface {
	Delta(id session.ID, call, text string)
	Hold(id session.ID, call, text string)
	EndDelta(id session.ID, call string)
}

// Activity collects the metrics of agents. Make it with New.
type Activity struct {
	provider func(model string) string

	appended   prometheus.Histogram
	calls      *prometheus.CounterVec
	answered   *prometheus.HistogramVec
	firstToken *prometheus.HistogramVec
	tokens     *prometheus.CounterVec
	turns      *prometheus.CounterVec
	tools      *prometheus.CounterVec
	failed     prometheus.Counter

	mu     sync.Mutex
	open   map[session.ID]*work
	recent map[string]*Provider
}

// work is what is known of a session whose agent works.
type work struct {
	provider string
	call     string // the model call in progress, "" for none
	asked    time.Time
	began    bool // a part of the reply came
}

// maxOpen bounds the memory of sessions at work. Calls of those beyond it are counted without their times.
const maxOpen = 100_000

// Provider is how the last model calls of a provider went.
type Provider struct {
	Name string
	// Class is the class of the last failure, "" if the last call was answered.
	Class string
	At    time.Time // of the last call
	Calls int64     // since the server started
	Fails int64
}

// Buckets of the histograms, in seconds.
var (
	storing = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	waiting = []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300}
)

// New makes an Activity. provider returns the provider of a model, one of a bounded number of names.
func New(provider func(model string) string) *Activity {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: waiting}, []string{"provider"})
	}
	return &Activity{provider: provider, open: map[session.ID]*work{}, recent: map[string]*Provider{},
		appended:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "deckhand_store_append_duration_seconds", Help: "Time to store the events of one change durably.", Buckets: storing}),
		calls:      counter("deckhand_model_calls_total", "Model calls by result: ok, cancelled, or the class of the error.", "provider", "result"),
		answered:   histogram("deckhand_model_call_duration_seconds", "Duration of answered model calls."),
		firstToken: histogram("deckhand_model_first_token_seconds", "Time from a model call to the first part of its reply."),
		tokens:     counter("deckhand_model_tokens_total", "Tokens of answered model calls by direction: input or output.", "provider", "direction"),
		turns:      counter("deckhand_turns_total", "Turns of agents by the provider of their last model call and by result: ok or error.", "provider", "result"),
		tools:      counter("deckhand_tool_calls_total", "Tool calls by result: ok, failed, cancelled, rejected or unknown.", "result"),
		failed:     prometheus.NewCounter(prometheus.CounterOpts{Name: "deckhand_conversation_start_failures_total", Help: "Conversations that could not be started."}),
	}
}

// Collectors are the metrics.
func (a *Activity) Collectors() []prometheus.Collector {
	return []prometheus.Collector{a.appended, a.calls, a.answered, a.firstToken, a.tokens, a.turns, a.tools, a.failed}
}

// Log is a log that measures what is appended to it.
func (a *Activity) Log(log session.WholeLog) session.WholeLog { return measured{log, a} }

type measured struct {
	session.WholeLog
	activity *Activity
}

// Append implements session.Log.
func (m measured) Append(ctx context.Context, b session.Batch) error {
	began := time.Now()
	err := m.WholeLog.Append(ctx, b)
	if err == nil {
		m.activity.stored(b, began, time.Now())
	}
	return err
}

// stored counts the events of a batch. Times are those of the server: the events' own may be replayed ones.
func (a *Activity) stored(b session.Batch, began, now time.Time) {
	a.appended.Observe(now.Sub(began).Seconds())
	for _, e := range b.Events {
		switch p := e.Payload.(type) {
		case session.ModelAsked:
			a.asked(b.ID, p, now)
		case session.ModelAnswered:
			a.settled(b.ID, p.Call, result{name: "ok", usage: p.Usage, at: now})
		case session.ModelFailed:
			a.settled(b.ID, p.Call, result{name: resultOf(p.Class), failed: classes[p.Class], at: now})
		case session.ToolReturned:
			a.tools.WithLabelValues(string(p.Outcome)).Inc()
		case session.TurnEnded:
			a.turns.WithLabelValues(a.leave(b.ID), okOr(p.State == session.AgentError || p.State == session.AgentRateLimited)).Inc()
		case session.Failed:
			a.failed.Inc()
			a.leave(b.ID)
		case session.Stopped, session.Paused, session.Deleted:
			a.leave(b.ID)
		}
	}
}

func okOr(failed bool) string {
	if failed {
		return "error"
	}
	return "ok"
}

// classes are the classes of errors that are attributed to a provider.
var classes = map[string]bool{string(llm.ClassAuth): true, string(llm.ClassRate): true, string(llm.ClassOverload): true, string(llm.ClassContext): true, string(llm.ClassPolicy): true,
	string(llm.ClassCredit): true, string(llm.ClassNetwork): true, string(llm.ClassInternal): true, string(llm.ClassRequest): true}

// resultOf keeps the number of results bounded. A call without a class was interrupted, or lost with its server.
func resultOf(class string) string {
	if classes[class] {
		return class
	}
	return "cancelled"
}

func (a *Activity) asked(id session.ID, p session.ModelAsked, now time.Time) {
	provider := a.provider(p.Model)
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.open[id]
	if w == nil {
		if len(a.open) >= maxOpen {
			return
		}
		w = &work{}
		a.open[id] = w
	}
	*w = work{provider: provider, call: p.Call, asked: now}
}

// result is how a model call ended.
type result struct {
	name   string
	failed bool
	usage  session.Usage
	at     time.Time
}

func (a *Activity) settled(id session.ID, call string, r result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.open[id]
	if w == nil || w.call != call {
		a.calls.WithLabelValues(unknown, r.name).Inc()
		return
	}
	w.call = ""
	a.calls.WithLabelValues(w.provider, r.name).Inc()
	p := a.recent[w.provider]
	if p == nil {
		p = &Provider{Name: w.provider}
		a.recent[w.provider] = p
	}
	switch {
	case r.failed:
		p.Class, p.At = r.name, r.at
		p.Calls++
		p.Fails++
	case r.name == "ok":
		p.Class, p.At = "", r.at
		p.Calls++
		a.answered.WithLabelValues(w.provider).Observe(r.at.Sub(w.asked).Seconds())
		a.began(w, r.at)
		a.tokens.WithLabelValues(w.provider, "input").Add(float64(r.usage.Input))
		a.tokens.WithLabelValues(w.provider, "output").Add(float64(r.usage.Output))
	}
}

// unknown is the provider of a call that began before this server did.
const unknown = "unknown"

// began records the first part of a reply. It is called with mu held.
func (a *Activity) began(w *work, now time.Time) {
	if !w.began {
		w.began = true
		a.firstToken.WithLabelValues(w.provider).Observe(now.Sub(w.asked).Seconds())
	}
}

// leave forgets a session whose agent stopped working, and returns its provider.
func (a *Activity) leave(id session.ID) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.open[id]
	delete(a.open, id)
	if w == nil {
		return unknown
	}
	return w.provider
}

// Providers lists the providers whose models were called, by name.
func (a *Activity) Providers() []Provider {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Provider
	for _, p := range a.recent {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(x, y Provider) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// Deltas returns a Deltas that measures the fragments and passes them on.
func (a *Activity) Deltas(to Deltas) Deltas { return watched{to, a} }

type watched struct {
	Deltas
	activity *Activity
}

// Delta implements Deltas.
func (w watched) Delta(id session.ID, call, text string) {
	w.activity.delta(id, call)
	w.Deltas.Delta(id, call, text)
}

// Hold implements Deltas: the text came, though it is not shown yet.
func (w watched) Hold(id session.ID, call, text string) {
	w.activity.delta(id, call)
	w.Deltas.Hold(id, call, text)
}

func (a *Activity) delta(id session.ID, call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.open[id]; o != nil && o.call == call {
		a.began(o, time.Now())
	}
}
