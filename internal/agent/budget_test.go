package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// spender is a model that counts as it likes, but never more than there is, and
// now and then breaks.
type spender struct {
	rand  *rand.Rand
	calls int
}

func (m *spender) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		bytes := int64(len(req.System))
		for _, x := range req.Messages {
			bytes += int64(len(x.Text)) + 16
			for _, c := range x.Calls {
				bytes += int64(len(c.Args) + len(c.Name))
			}
		}
		for _, x := range req.Tools {
			bytes += int64(len(x.Name) + len(x.Description) + len(x.Schema))
		}
		u := llm.Usage{Input: 1 + m.rand.Int64N(bytes), Output: m.rand.Int64N(req.MaxOutput + 1)}
		u.CacheRead = m.rand.Int64N(u.Input)
		u.CacheWrite = m.rand.Int64N(u.Input - u.CacheRead + 1)
		if m.rand.IntN(5) == 0 {
			yield(llm.Part{}, &llm.Error{Class: llm.ClassNetwork, Began: m.rand.IntN(2) == 0, Unsent: m.rand.IntN(2) == 0})
			return
		}
		m.calls++
		args, _ := json.Marshal(map[string]string{"text": fmt.Sprint(m.calls, strings.Repeat("x", m.rand.IntN(2000)))})
		if yield(llm.Part{Call: &llm.Call{ID: "a", Name: "say", Args: args}}, nil) {
			yield(llm.Part{Done: &llm.Done{Usage: u}}, nil)
		}
	}
}

// Whatever the prices are and the provider counts: the limit holds at every
// event, and it is reached in words that say so.
func TestBudgetIsNeverExceeded(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		budget := session.Money(random.Int64N(5e9))
		price := llm.Price{Input: random.Float64() * 20, Output: random.Float64() * 80, CacheRead: random.Float64() * 5, CacheWrite: random.Float64() * 40}
		m := &spender{rand: random}
		r := newRig(t)
		r.profile = func(context.Context, session.State) (agent.Profile, error) {
			p := profile(m)
			p.Info = llm.Info{Price: price, Priced: true, Window: 200_000, MaxOutput: 1 + random.Int64N(9000)}
			p.Budget, p.MaxAsks, p.Condense = &budget, 40, true
			p.Tools = []tool.Tool{newHand("say")}
			return p, nil
		}
		r.more = func(c *agent.Config) { c.Retry.Attempts = 100 }
		stop := r.start()
		id := r.create("go")
		st := r.until(id, "the end of the money", inError)
		stop()
		if st.ErrorID != "STATUS$ERROR_BUDGET" && st.ErrorID != "STATUS$ERROR_MAX_ITERATIONS" {
			t.Errorf("seed %d: %s", seed, st.ErrorID)
		}
		at := session.State{ID: id}
		for i, e := range r.events(id) {
			at = at.Apply(session.Event{Number: int64(i + 1), Payload: e})
			if spent := at.Totals.Cost + at.Reserved; spent > budget {
				t.Fatalf("seed %d: after event %d, %v of %v are spent or reserved", seed, i+1, spent, budget)
			}
		}
	}
}

// The second reservation rests on what the provider counted, not on bytes.
func TestReservationUsesTheProvidersCount(t *testing.T) {
	r := chat(t, llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}, Usage: llm.Usage{Input: 700, Output: 20}}, done("ok"))
	r.tools(newHand("say"))
	r.set(func(p *agent.Profile) {
		p.Info = llm.Info{Price: llm.Price{Input: 1}, Priced: true, MaxOutput: 100}
		p.System = strings.Repeat("You are an agent. ", 500)
	})
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	asked := all[session.ModelAsked](r.rig, id)
	if first, second := asked[0].Reserved, asked[1].Reserved; first < 9000*1000 || second < 1720*1000 || second > 2500*1000 {
		t.Errorf("reserved %v and %v", first, second)
	}
}

// A count of another model's is not believed.
func TestReservationAfterAChangeOfModel(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "yes", Usage: llm.Usage{Input: 5, Output: 1}})
	r.set(func(p *agent.Profile) { p.Info = llm.Info{Price: llm.Price{Input: 1}, Priced: true, MaxOutput: 100} })
	r.start()
	id := r.create("go")
	r.until(id, "an answer", answered)
	r.set(func(p *agent.Profile) { p.ModelName = "openai/other" })
	r.say(id, "and now?")
	r.until(id, "the second answer", func(s session.State) bool { return answered(s) && s.Seen > 8 })
	asked := all[session.ModelAsked](r.rig, id)
	if asked[1].Reserved < asked[0].Reserved {
		t.Errorf("reserved %v and then %v", asked[0].Reserved, asked[1].Reserved)
	}
}

// What is left of a budget buys a shorter answer rather than none.
func TestLittleMoneyShortAnswer(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "ok"})
	little := session.Money(60e6) // the longest answer alone would cost twice as much
	r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &little })
	r.start()
	id := r.create("go")
	st := r.until(id, "an answer", answered)
	if asked := all[session.ModelAsked](r.rig, id); st.ErrorID != "" || asked[0].Reserved > little || asked[0].Reserved < little*9/10 {
		t.Errorf("%s; reserved %v of %v", st.Reason, asked[0].Reserved, little)
	}
}

// Raising the limit lets the agent go on: at once, or with the next message.
func TestRaisedBudgetContinues(t *testing.T) {
	for name, act := range map[string]func(*wired, session.ID){
		"resume":  func(r *wired, id session.ID) { r.update(id, session.State.Resume) },
		"message": func(r *wired, id session.ID) { r.say(id, "go on") },
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}, Usage: llm.Usage{Input: 2000, Output: 8000}}, done("ok"))
			r.tools(newHand("say"))
			little, much := session.Money(155e6), session.Money(10e9)
			r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &little })
			r.start()
			id := r.create("go")
			st := r.until(id, "the end of the money", inError)
			if st.ErrorID != "STATUS$ERROR_BUDGET" || !strings.Contains(st.Reason, "$0.155") || !strings.Contains(st.Reason, "Raise the budget") {
				t.Errorf("%s: %s", st.ErrorID, st.Reason)
			}
			before := len(r.asked())
			act(r, id)
			r.until(id, "the same again", func(s session.State) bool { return inError(s) && s.Last > st.Last+2 })
			if len(r.asked()) != before {
				t.Error("the model was asked without money")
			}
			r.set(func(p *agent.Profile) { p.Budget = &much })
			act(r, id)
			r.until(id, "the end", finished)
		})
	}
}

// A message that comes at the very moment at which a turn ends in an error is
// not passed over: it gets a turn of its own.
func TestMessageAtTheMomentOfAnError(t *testing.T) {
	r := newRig(t)
	none := session.Money(0)
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(newGate())
		p.Info, p.Budget = priced, &none
		return p, nil
	}
	other, said := session.New(r.log), false // another server's
	fault := func(b session.Batch) error {
		if _, ok := b.Events[0].Payload.(session.TurnEnded); !ok || said {
			return nil
		}
		said = true
		_, err := other.Update(t.Context(), b.ID, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "and this?"}) })
		return err
	}
	r.fault.Store(&fault)
	r.start()
	id := r.create("go")
	r.until(id, "the second error", func(s session.State) bool { return inError(s) && !s.Pending() })
	if n := count[session.TurnEnded](r.events(id)); n != 2 {
		t.Errorf("%d turns", n)
	}
}
