package session_test

import (
	"context"

	"pgregory.net/rapid"

	"deckhand/internal/session"
	"deckhand/internal/session/scripts"
)

// actions are what may happen in a world. A sensible step of some loop is in
// the list several times: without it random choices would rarely get anywhere.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":      w.check,
		"say":   w.say,
		"say-2": w.say,
		"requeue": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			queued := s.Queued()
			if len(queued) == 0 || s.Replaying() {
				return nil, nil
			}
			if rapid.Bool().Draw(t, "delete") {
				return s.Requeue(queued[:1])
			}
			return s.Requeue(queued, session.UserSaid{Text: "edited"})
		}),
		"send-now":  w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.SendNow() }),
		"start":     w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Start() }),
		"stop":      w.stop,
		"pause":     w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Pause() }),
		"pause-2":   w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Pause() }),
		"pause-now": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.PauseNow() }),
		"resume":    w.resume, "resume-2": w.resume,
		"rename": w.rename,
		"delete": w.remove,
		"decide": w.decide,
		"note": w.person(func(*rapid.T, session.State) ([]session.Payload, error) {
			return []session.Payload{session.Noted{ID: "x"}}, nil
		}),
		"compact": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) {
			return s.AskCompact(session.CompactAsked{Instructions: "keep the plan"})
		}),
		"egress": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			return s.SetEgress(session.EgressSet{Mode: rapid.SampledFrom([]string{"open", "off"}).Draw(t, "mode")})
		}),
		"override": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			return s.Override(session.Overridden{Model: rapid.SampledFrom([]string{"", "other/model"}).Draw(t, "model")})
		}),
		"checkpoint": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) {
			return s.Checkpointed(session.Checkpointed{Checkpoint: s.Checkpoint + 1, UpTo: s.Last})
		}),
		"restore": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			action := rapid.SampledFrom([]session.RestoreAction{session.RestorePoint, session.RestoreUndo, session.RestoreRedo}).Draw(t, "action")
			return s.Restore(session.Restored{Action: action, Point: 1, Conversation: rapid.Bool().Draw(t, "conversation"), Files: true, Before: s.Checkpoint + 1})
		}),
		"request": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			return s.Opened(session.RequestOpened{Provider: "github", Repository: "octo/app", Number: rapid.IntRange(1, 30).Draw(t, "number")})
		}),
		"type": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Type("ls") }),
		"checkout": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) {
			switch {
			case s.SettingUp != nil && s.SetUp == nil:
				return s.EndSetUp(session.SetUp{Script: "setup.sh"})
			case s.Checkout != nil && s.Unprepared():
				return scripts.Begin(s, scripts.Scripts{SetUp: "a", Hook: "b", Hash: "c"}, scripts.Terms{Confinable: true, Hooked: true})
			}
			return s.CheckOut(session.CheckedOut{Repository: "octo/app", Dir: "/workspace/app", Script: "setup.sh", Hook: "pre-commit.sh"})
		}),
		"trust": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			return s.SetTrust(session.TrustSet{Trusted: rapid.Bool().Draw(t, "trusted"), Reason: session.TrustByList})
		}),
		"child":   w.settleChild,
		"cap":     w.cap,
		"take":    w.take,
		"condens": w.condense,
		"work-1":  w.work, "work-2": w.work, "work-3": w.work, "work-4": w.work, "work-5": w.work, "work-6": w.work,
		"work-7": w.work, "work-8": w.work, "work-9": w.work, "work-10": w.work, "work-11": w.work, "work-12": w.work,
		"wild-1": w.wild, "wild-2": w.wild,
	}
}

// rare is true now and then. Rapid prefers small numbers, so the rare case is a large one.
func rare(t *rapid.T, label string) bool { return rapid.IntRange(0, 40).Draw(t, label) > 33 }

func (w *world) stop(t *rapid.T) {
	if len(w.log.refold(theID).Grants) == 0 && !rare(t, "really") {
		t.Skip()
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
}

func (w *world) resume(t *rapid.T) {
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Resume() })
}

func (w *world) say(t *rapid.T) {
	m := session.UserSaid{Text: "do it"}
	if rapid.Bool().Draw(t, "keyed") {
		m.Key = rapid.SampledFrom([]string{"k1", "k2", "k3", w.name("k")}).Draw(t, "key")
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Say(m) })
}

func (w *world) rename(t *rapid.T) {
	title := rapid.SampledFrom([]string{"", "  ", "a title", "another"}).Draw(t, "title")
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Rename(title) })
}

func (w *world) remove(t *rapid.T) {
	if !rare(t, "really") { // else most worlds would be short
		t.Skip()
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Delete() })
}

func (w *world) decide(t *rapid.T) {
	g := session.ApprovalGiven{Approved: rapid.Bool().Draw(t, "yes")}
	g.Reason = rapid.SampledFrom([]string{"", "because"}).Draw(t, "reason")
	g.Always = rapid.SampledFrom([]string{"", "ls *", "cat *"}).Draw(t, "always")
	if rapid.Bool().Draw(t, "edited") {
		g.Args = []byte(`{"command":"ls"}`)
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Decide(g) })
}

// settleChild says what some child spent, of its grant if it has one. It may be said twice.
func (w *world) settleChild(t *rapid.T) {
	if len(w.children) == 0 {
		t.Skip()
	}
	child := rapid.SampledFrom(w.children).Draw(t, "child")
	cost := session.Money(rapid.IntRange(0, 9).Draw(t, "cost"))
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) {
		grant, ok := s.Granted(child)
		if !ok && (w.limited || s.Limited) && !s.Counted(child) {
			return nil, nil // where there is a limit nothing is spent without a grant
		}
		if ok {
			cost = min(cost, grant)
		}
		return s.Settle(child, cost)
	})
}

func (w *world) cap(t *rapid.T) {
	if !rare(t, "really") || !rare(t, "really really") { // else nothing could be asked any more
		t.Skip()
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Cap() })
}

// take makes a loop claim the session. If the store forgets to confirm, the
// loop does not know that it owns it, as in life.
func (w *world) take(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	st, err := w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Take(l.name) })
	if err == nil {
		l.claim = st.Claim
	}
}

func (w *world) condense(t *rapid.T) {
	n := w.log.refold(theID).Last
	from := rapid.Int64Range(-1, n+1).Draw(t, "from")
	to := rapid.Int64Range(-1, n+1).Draw(t, "to")
	_, _ = w.update(t, context.Background(), do(session.Condensed{From: from, To: to, Summary: "…"}))
}

// work lets one loop, owner or not, do what it thinks comes next.
func (w *world) work(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	zombie := rare(t, "zombie")
	st := w.log.refold(theID)
	if st.Claim == 0 && !zombie {
		w.take(t)
		return
	}
	for _, o := range w.loops { // mostly the owner works, sometimes a loop that lost the session tries
		if !zombie && o.claim != 0 && o.claim == st.Claim {
			l = o
		}
	}
	rule, ok := w.sensible(t, l, st)
	if !ok {
		t.Skip()
	}
	_, _ = w.update(t, as(l.claim), rule)
}

// wild is any rule of a loop at any time, with the claim of any loop.
func (w *world) wild(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	st := w.log.refold(theID)
	rules := []func(session.State) ([]session.Payload, error){
		w.prepare(l),
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(l.claim) },
		func(s session.State) ([]session.Payload, error) {
			return s.CallNext(l.claim, session.RiskHigh, &session.ApprovalAsked{})
		},
		func(s session.State) ([]session.Payload, error) { return s.Suggest(l.claim, "a suggestion") },
		func(s session.State) ([]session.Payload, error) { return s.Fail(l.claim, "STATUS$ERROR", "no image") },
		func(s session.State) ([]session.Payload, error) {
			return s.Returned(l.claim, session.ToolReturned{ID: "t1", Outcome: session.FailedRun})
		},
		w.ask(t, l),
		w.end(t, l, st),
		w.grant(t, l),
		w.endOver(l),
		l.only(session.RecallAsked{Of: st.LastSaid, Type: "knowledge"}),
		l.only(session.Recalled{Of: st.LastSaid, Text: "by the way"}),
		w.endTyped(l, st),
		l.only(session.Nudged{Rule: "stuck"}),
		func(s session.State) ([]session.Payload, error) {
			return s.ReplayStep(l.claim, nil, s.Replay >= w.script)
		},
		session.Chain(w.ask(t, l), func(s session.State) ([]session.Payload, error) {
			return s.Answered(l.claim, session.ModelAnswered{Call: l.call})
		}, func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(l.claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		}),
	}
	_, _ = w.update(t, as(l.claim), rapid.SampledFrom(rules).Draw(t, "rule"))
}
