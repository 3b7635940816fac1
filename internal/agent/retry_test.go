package agent_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

var priced = llm.Info{Price: llm.Price{Input: 3, Output: 15}, Priced: true}

// What may go away by itself is tried again, is told to people, is no step of
// the turn, and costs what it must be taken to have cost.
func TestCallsThatAreTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		reply llmtest.Reply
		costs bool
	}{
		"429":         {llmtest.Reply{Status: 429, RetryAfter: "0.001", Message: "slow down"}, false},
		"503":         {llmtest.Reply{Status: 503, Message: "overloaded"}, false},
		"500":         {llmtest.Reply{Status: 500, Message: "oops"}, false},
		"cut stream":  {llmtest.Reply{Text: "some words of an answer", Break: llmtest.Drop}, true},
		"early end":   {llmtest.Reply{Text: "some words of an answer", Break: llmtest.EndEarly}, true},
		"malformed":   {llmtest.Reply{Text: "some words of an answer", Break: llmtest.Malformed}, true},
		"late error":  {llmtest.Reply{Text: "some words of an answer", Break: llmtest.ErrorLate, Code: "overloaded_error"}, true},
		"no answer":   {llmtest.Reply{}, true},
		"only spaces": {llmtest.Reply{Text: " \n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, test.reply, test.reply, llmtest.Reply{Text: "yes", Usage: llm.Usage{Input: 100, Output: 10}})
			r.set(func(p *agent.Profile) { p.Info, p.MaxAsks = priced, 1 })
			r.start()
			id := r.create("go")
			st := r.until(id, "an answer", answered)
			failed := all[session.ModelFailed](r.rig, id)
			if len(failed) != 2 || len(r.asked()) != 3 {
				t.Fatalf("%+v after %d requests", failed, len(r.asked()))
			}
			var want session.Money
			for i, f := range failed {
				if test.costs {
					want += all[session.ModelAsked](r.rig, id)[i].Reserved
				}
				if (f.Cost > 0) != test.costs || !f.Retried {
					t.Errorf("%+v", f)
				}
			}
			if want += 100*3000 + 10*15000; st.Totals.Cost != want {
				t.Errorf("it cost %v, not %v", st.Totals.Cost, want)
			}
			notes := all[session.Noted](r.rig, id)
			if len(notes) != 2 || notes[0].ID != "STATUS$LLM_RETRY" || !strings.HasPrefix(notes[1].Message, "Retrying LLM request, 2 / 4") {
				t.Errorf("people were told %+v", notes)
			}
		})
	}
}

// What does not go away by itself ends the turn at once, with the reason and the
// code for it; the next message tries again.
func TestCallsThatAreNotTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		reply llmtest.Reply
		id    string
	}{
		"key":     {llmtest.Reply{Status: 401, Message: "no such key"}, "STATUS$ERROR_LLM_AUTHENTICATION"},
		"policy":  {llmtest.Reply{Status: 400, Code: "content_policy_violation", Message: "no"}, "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION"},
		"credit":  {llmtest.Reply{Status: 402, Message: "no money left"}, "STATUS$ERROR_LLM_OUT_OF_CREDITS"},
		"quota":   {llmtest.Reply{Status: 429, Code: "insufficient_quota", Message: "no money left"}, "STATUS$ERROR_LLM_OUT_OF_CREDITS"},
		"request": {llmtest.Reply{Status: 400, Message: "what is this?"}, "STATUS$ERROR"},
		"context": {llmtest.Reply{Status: 400, Code: "context_length_exceeded", Message: "too long"}, "STATUS$ERROR_LLM_CONTEXT_WINDOW"},
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, test.reply, llmtest.Reply{Text: "yes"})
			r.set(func(p *agent.Profile) { p.Info = priced })
			r.start()
			id := r.create("go")
			st := r.until(id, "the error", inError)
			if why, then, ok := strings.Cut(st.Reason, ": "+strings.TrimRight(test.reply.Message, ".")+". "); !ok || why == "" || !strings.HasSuffix(then, ".") {
				t.Errorf("people are not told what happened and what to do: %q", st.Reason)
			}
			if st.ErrorID != test.id || st.Wants() || st.Totals.Cost != 0 || len(r.asked()) != 1 {
				t.Errorf("%+v after %d requests", st, len(r.asked()))
			}
			r.say(id, "again")
			r.until(id, "an answer", answered)
			if got := r.last().Messages; len(got) != 2 || got[1].Text != "again" {
				t.Errorf("the model was shown %s", texts(r.last()))
			}
		})
	}
}

// A request that never left cannot have cost anything.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, w := range wires {
		r := newWired(t, w, llmtest.Script(llmtest.Reply{Text: "yes"}))
		c := r.server.Config(w, "test")
		c.BaseURL = "http://" + l.Addr().String()
		r.set(func(p *agent.Profile) { p.Model, p.Info = reach(t, c), priced })
		r.start()
		id := r.create("go")
		st := r.until(id, "the error", inError)
		if st.ErrorID != "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE" || st.Totals.Cost != 0 || count[session.ModelFailed](r.events(id)) != 5 {
			t.Errorf("%s: %+v", w, st)
		}
	}
}

// fails is a model that fails so often, and then answers.
type fails struct {
	err   *llm.Error
	times int

	mu    sync.Mutex
	asked []time.Time
}

func (m *fails) Stream(context.Context, llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		m.mu.Lock()
		m.asked = append(m.asked, time.Now())
		n := len(m.asked)
		m.mu.Unlock()
		if n <= m.times {
			yield(llm.Part{}, m.err)
		} else if yield(llm.Part{Text: "done"}, nil) {
			yield(llm.Part{Done: &llm.Done{}}, nil)
		}
	}
}

func (m *fails) waits() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []time.Duration
	for i := range m.asked[1:] {
		out = append(out, m.asked[i+1].Sub(m.asked[i]))
	}
	return out
}

// The waits double; one that the provider asks for is obeyed.
func TestWaits(t *testing.T) {
	second := time.Second
	for name, test := range map[string]struct {
		err      llm.Error
		from, to []time.Duration
	}{
		"doubling": {llm.Error{Class: llm.ClassOverload}, []time.Duration{1 * second, 2 * second, 4 * second, 8 * second}, []time.Duration{2 * second, 4 * second, 8 * second, 16 * second}},
		"asked":    {llm.Error{Class: llm.ClassRate, RetryAfter: 90 * second}, []time.Duration{90 * second}, []time.Duration{91 * second}},
		"too long": {llm.Error{Class: llm.ClassRate, RetryAfter: 9 * time.Hour}, []time.Duration{10 * time.Minute}, []time.Duration{10*time.Minute + second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fails{err: &test.err, times: len(test.from)}
				r := virtual(t, m)
				r.more = func(c *agent.Config) { c.Retry = agent.Retry{} }
				r.start()
				id := r.create("go")
				r.until(id, "an answer", answered)
				for i, d := range m.waits() {
					if d < test.from[i] || d > test.to[i] {
						t.Errorf("the waits were %v", m.waits())
					}
				}
			})
		})
	}
}

// Too many requests: people see it while the agent waits and when it gave up.
func TestRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fails{err: &llm.Error{Class: llm.ClassRate, Message: "slow down", RetryAfter: time.Minute}, times: 5}
		r := virtual(t, m)
		r.start()
		id := r.create("go")
		st := r.until(id, "the wait", func(s session.State) bool { return s.Agent == session.AgentRateLimited })
		if !st.InTurn || st.Reason != "slow down" {
			t.Errorf("%+v", st)
		}
		st = r.until(id, "the end", func(s session.State) bool { return !s.InTurn && s.Seen > 0 })
		if st.Agent != session.AgentRateLimited || st.ErrorID == "" || st.Wants() || len(m.waits()) != 4 {
			t.Errorf("%+v after %v", st, m.waits())
		}
		var states []string
		for _, c := range all[session.StateChanged](r, id) {
			states = append(states, string(c.State))
		}
		if want := strings.Repeat("rate_limited running ", 4); strings.Join(states, " ")+" " != want {
			t.Errorf("people saw %v", states)
		}
		r.say(id, "again")
		r.until(id, "an answer", answered)
	})
}

// The wait ends when a person wants something else.
func TestWaitIsInterrupted(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*rig, session.ID)
		then func(session.State) bool
		n    int
	}{
		"stop": {func(r *rig, id session.ID) {
			r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("") })
		}, rest, 1},
		"pause": {func(r *rig, id session.ID) { r.update(id, session.State.PauseNow) }, func(s session.State) bool { return s.Paused && !s.Wants() }, 1},
		"say":   {func(r *rig, id session.ID) { r.say(id, "well?") }, answered, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fails{err: &llm.Error{Class: llm.ClassRate, RetryAfter: 5 * time.Minute}, times: 1}
				r := virtual(t, m)
				stop := r.start()
				id := r.create("go")
				r.until(id, "the wait", func(s session.State) bool { return s.Agent == session.AgentRateLimited })
				synctest.Wait()
				began := time.Now()
				test.act(r, id)
				r.until(id, "the end of the wait", test.then)
				synctest.Wait()
				if d := time.Since(began); d > time.Minute {
					t.Errorf("it took %v", d)
				}
				stop()
				if len(m.asked) != test.n {
					t.Errorf("the model was asked %d times", len(m.asked))
				}
			})
		})
	}
}

// Errors without a class are the provider's fault, and secrets are not told.
func TestUnknownErrorAndSecrets(t *testing.T) {
	r := newRig(t)
	broke := errors.New("connection with key hunter2-hunter2 broke")
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(failing{broke})
		p.Masker = secret.NewMasker("hunter2-hunter2")
		return p, nil
	}
	r.start()
	id := r.create("go")
	st := r.until(id, "the error", inError)
	if st.ErrorID != "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR" {
		t.Errorf("%+v", st)
	}
	for _, f := range all[session.ModelFailed](r, id) {
		if strings.Contains(f.Message, "hunter2") {
			t.Errorf("a secret is told: %s", f.Message)
		}
	}
	if strings.Contains(st.Reason, "hunter2") {
		t.Errorf("a secret is told: %s", st.Reason)
	}
}

// A connection that is lost before anything came may have cost the whole call:
// it is unknown what the provider did with the request.
func TestConnectionLostBeforeTheAnswer(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			var lost atomic.Bool
			r := newWired(t, w, func(llmtest.Asked) llmtest.Reply {
				if lost.CompareAndSwap(false, true) {
					panic(http.ErrAbortHandler)
				}
				return llmtest.Reply{Text: "yes"}
			})
			r.set(func(p *agent.Profile) { p.Info = priced })
			r.start()
			id := r.create("go")
			r.until(id, "an answer", answered)
			failed := all[session.ModelFailed](r.rig, id)
			if len(failed) != 1 || failed[0].Class != string(llm.ClassNetwork) || failed[0].Cost != all[session.ModelAsked](r.rig, id)[0].Reserved {
				t.Errorf("%+v", failed)
			}
		})
	}
}
