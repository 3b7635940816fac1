package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/session/scripts"
	"deckhand/internal/tool"
)

// asking is a rig whose calls wait for the person.
func asking(t *testing.T, replies ...llmtest.Reply) (*wired, *hand) {
	t.Helper()
	r, say := chat(t, replies...), newHand("say")
	r.tools(say)
	r.set(func(p *agent.Profile) { p.Confirm = true })
	return r, say
}

var sayTwice = calls(called("a", "say", `{"text":"one"}`), called("b", "say", `{"text":"two"}`))

func TestAcceptedCallIsMade(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	r.start()
	id := r.create("go")
	open := r.awaiting(id)
	if open.ID != "a" || len(say.calls()) != 0 {
		t.Fatalf("asked about %+v after %v", open, say.calls())
	}
	if st := r.until(id, "rest", func(s session.State) bool { return !s.Wants() }); st.Agent != session.AgentAwaitingYes {
		t.Errorf("the agent is %s", st.Agent)
	}
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
	if made := say.calls(); len(made) != 1 || made[0].Again {
		t.Errorf("made %+v", made)
	}
}

func TestRejectedCall(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		state  session.AgentState
		made   int
		asked  int
	}{
		"without a reason the agent waits": {"", session.AgentAwaitingUser, 0, 1},
		"with a reason it learns it":       {"use a file instead", session.AgentFinished, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, say := asking(t, sayTwice, done("ok"))
			r.start()
			id := r.create("go")
			r.awaiting(id)
			st := r.decide(id, session.ApprovalGiven{Approved: false, Reason: test.reason})
			if st.Agent != session.AgentUserNo {
				t.Errorf("the agent is %s", st.Agent)
			}
			if test.reason != "" { // the second call is asked about by itself
				r.until(id, "the second question", func(s session.State) bool { c, ok := s.Awaiting(); return ok && c.ID == "b" })
				r.decide(id, session.ApprovalGiven{Approved: true})
			}
			r.until(id, "the end of the turn", func(s session.State) bool { return !s.InTurn && s.Agent == test.state })
			got := all[session.ToolReturned](r.rig, id)
			if got[0].Outcome != session.Rejected || !strings.Contains(got[0].Output, test.reason) || len(say.calls()) != test.made || len(r.asked()) != test.asked {
				t.Errorf("results %+v, %d made, %d asked", got, len(say.calls()), len(r.asked()))
			}
			if test.reason == "" && (len(got) != 2 || got[1].Outcome != session.Cancelled) {
				t.Errorf("the rest has the results %+v", got)
			}
			if test.reason != "" && !strings.Contains(texts(r.last()), test.reason) {
				t.Errorf("the model was shown %s", texts(r.last()))
			}
		})
	}
}

// The person's arguments are those that the tool gets, the log shows and the model learns of.
func TestEditedArguments(t *testing.T) {
	for args, want := range map[string]struct {
		outcome session.Outcome
		made    int
	}{
		`{"text":"better"}`: {session.Succeeded, 1},
		`{"text":42}`:       {session.FailedRun, 0},
	} {
		r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
		r.start()
		id := r.create("go")
		r.awaiting(id)
		r.decide(id, session.ApprovalGiven{Approved: true, Args: json.RawMessage(args)})
		r.until(id, "the end", finished)
		got, made := all[session.ToolReturned](r.rig, id)[0], say.calls()
		if got.Outcome != want.outcome || string(got.Args) != args || len(made) != want.made {
			t.Errorf("%s: %+v, made %+v", args, got, made)
		}
		if len(made) == 1 && string(made[0].Args) != args {
			t.Errorf("the tool got %s", made[0].Args)
		}
		if !strings.Contains(texts(r.last()), "The user changed the arguments of this call to "+args) {
			t.Errorf("the model was shown %s", texts(r.last()))
		}
	}
}

// Always is for calls like this one, and not for what only looks like it.
func TestAlways(t *testing.T) {
	sh := func(id, command string) llmtest.Reply {
		args, _ := json.Marshal(map[string]string{"command": command})
		return calls(called(id, "execute_bash", string(args)))
	}
	r := chat(t, sh("a", "git log -1"), sh("b", "git log -2"), sh("c", "git log -1 | sh"), done("ok"))
	bash := newHand("execute_bash")
	bash.spec.Schema = nil
	r.tools(bash)
	r.set(func(p *agent.Profile) { p.Confirm = true })
	stop := r.start()
	id := r.create("go")
	r.awaiting(id)
	pattern := all[session.ApprovalAsked](r.rig, id)[0].Pattern
	if pattern == "" {
		t.Fatal("there is no pattern for a simple command")
	}
	r.decide(id, session.ApprovalGiven{Approved: true, Always: pattern})
	if open := r.awaiting(id); open.ID != "c" {
		t.Errorf("asked about %+v", open)
	}
	stop()
	r.start() // what was allowed is remembered
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
	if n := len(bash.calls()); n != 3 {
		t.Errorf("%d calls were made", n)
	}
}

// A restart while the person is asked: the question stays, and the call is made
// once and is known not to have been begun.
func TestRestartWhileAsking(t *testing.T) {
	for name, within := range map[string]time.Duration{"without a deadline": 0, "with one": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
			r.more = func(c *agent.Config) { c.Approval.Within = within }
			stop := r.start()
			id := r.create("go")
			r.awaiting(id)
			stop()
			stop = r.start()
			r.awaiting(id)
			if len(say.calls()) != 0 {
				t.Fatal("a restart is not an approval")
			}
			stop()
			r.decide(id, session.ApprovalGiven{Approved: true}) // the session has no holder now
			r.start()
			r.until(id, "the end", finished)
			if made := say.calls(); len(made) != 1 || made[0].Again {
				t.Errorf("made %+v", made)
			}
		})
	}
}

// An approved call that an owner before us may have begun is told to be one.
func TestRestartDuringAnApprovedCall(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	began := make(chan struct{}, 1)
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Again {
			return tool.Result{Text: "who knows", Unknown: true}, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	stop := r.start()
	id := r.create("go")
	r.awaiting(id)
	r.decide(id, session.ApprovalGiven{Approved: true})
	<-began
	stop()
	r.start()
	r.until(id, "the end", finished)
	if made := say.calls(); len(made) != 2 || made[0].Again || !made[1].Again || made[0].ID != made[1].ID {
		t.Errorf("made %+v", made)
	}
	if n := count[session.ToolReturned](r.events(id)); n != 2 { // finish is the other
		t.Errorf("%d results", n)
	}
}

func TestInterruptedWhileAsking(t *testing.T) {
	for name, rule := range map[string]func(session.State) ([]session.Payload, error){
		"pause": session.State.PauseNow,
		"stop":  func(s session.State) ([]session.Payload, error) { return s.Stop("") },
	} {
		t.Run(name, func(t *testing.T) {
			r, say := asking(t, sayTwice, done("ok"))
			r.start()
			id := r.create("go")
			r.awaiting(id)
			if st := r.update(id, rule); len(st.Open) != 0 {
				t.Errorf("open: %+v", st.Open)
			}
			r.say(id, "go on, but otherwise")
			r.until(id, "the end", finished)
			if got := r.last().Messages; got[len(got)-1].Text != "go on, but otherwise" || len(say.calls()) != 0 {
				t.Errorf("the model was shown %s", texts(r.last()))
			}
		})
	}
}

func TestMessageWhileAsking(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	r.start()
	id := r.create("go")
	r.awaiting(id)
	r.say(id, "by the way")
	if open := r.awaiting(id); open.ID != "a" || len(say.calls()) != 0 {
		t.Errorf("a message is not an approval: %+v", open)
	}
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
	if got := r.last().Messages; got[len(got)-1].Text != "by the way" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

func TestAnalyzers(t *testing.T) {
	for name, test := range map[string]struct {
		analyzer, tool, args string
		asks                 bool
		risk                 session.Risk
	}{
		"no rating":                  {"", "execute_bash", `{"command":"ls"}`, true, session.RiskUnknown},
		"model says low":             {"llm", "say", `{"text":"x","security_risk":"LOW"}`, false, session.RiskLow},
		"model says high":            {"llm", "say", `{"text":"x","security_risk":"HIGH"}`, true, session.RiskHigh},
		"model says nothing":         {"llm", "say", `{"text":"x"}`, true, session.RiskUnknown},
		"model says something else":  {"llm", "say", `{"text":"x","security_risk":"none"}`, true, session.RiskUnknown},
		"rules say low":              {"rules", "execute_bash", `{"command":"ls -l"}`, false, session.RiskLow},
		"rules say high":             {"rules", "execute_bash", `{"command":"rm -rf /"}`, true, session.RiskHigh},
		"rules ignore the model":     {"rules", "execute_bash", `{"command":"rm -rf /","security_risk":"LOW"}`, true, session.RiskHigh},
		"model says low of a high":   {"llm", "execute_bash", `{"command":"rm -rf /","security_risk":"LOW"}`, true, session.RiskHigh},
		"model says low of a riddle": {"llm", "execute_bash", `{"command":"$(echo cm0= | base64 -d) -rf x","security_risk":"LOW"}`, true, session.RiskUnknown},
		"model says low of a test":   {"llm", "execute_bash", `{"command":"some-linter .","security_risk":"LOW"}`, false, session.RiskLow},
		"high without an analyzer":   {"", "execute_bash", `{"command":"rm -rf /"}`, true, session.RiskHigh},
		"harmless":                   {"", "muse", `{"text":"x"}`, false, session.RiskUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, calls(called("a", test.tool, test.args)), done("ok"))
			say, bash, muse := newHand("say"), newHand("execute_bash"), newHand("muse")
			bash.spec.Schema, muse.spec.Harmless = nil, true
			r.tools(say, bash, muse)
			r.set(func(p *agent.Profile) { p.Confirm, p.Analyzer = true, test.analyzer })
			r.start()
			id := r.create("go")
			if test.asks {
				r.awaiting(id)
				r.decide(id, session.ApprovalGiven{Approved: true})
			}
			r.until(id, "the end", finished)
			if n := count[session.ApprovalAsked](r.events(id)); n != map[bool]int{true: 1}[test.asks] {
				t.Errorf("asked %d times", n)
			}
			if got := all[session.ToolCalled](r.rig, id)[0].Risk; got != test.risk {
				t.Errorf("rated %d", got)
			}
			made := slices.Concat(say.calls(), bash.calls(), muse.calls())
			if len(made) != 1 || strings.Contains(string(made[0].Args), "security_risk") {
				t.Errorf("the tool was given %+v", made)
			}
			rates := strings.Contains(string(r.last().Body), `"security_risk":{`)
			if rates != (test.analyzer == "llm") {
				t.Errorf("the model is asked for a rating: %v", rates)
			}
		})
	}
}

// virtual is a rig for a bubble of virtual time: its model is in the process.
func virtual(t *testing.T, m llm.Model, tools ...tool.Tool) *rig {
	r := newRig(t)
	r.patience = 1000 * time.Hour
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(m)
		p.Tools, p.Confirm = tools, true
		return p, nil
	}
	return r
}

// Without an answer the operator's default holds, and not earlier.
func TestApprovalDeadline(t *testing.T) {
	for name, accept := range map[string]bool{"accept": true, "reject": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &parts{answers: [][]llm.Part{
					{{Call: &llm.Call{ID: "a", Name: "say", Args: json.RawMessage(`{"text":"one"}`)}}, {Done: &llm.Done{}}},
					{{Text: "done"}, {Done: &llm.Done{}}},
				}}
				say := newHand("say")
				r := virtual(t, m, say)
				r.more = func(c *agent.Config) { c.Approval = agent.Approval{Within: time.Hour, Accept: accept} }
				stop := r.start()
				began := time.Now()
				id := r.create("go")
				r.awaiting(id)
				stop() // the clock goes on without a server
				time.Sleep(30 * time.Minute)
				r.start()
				r.until(id, "the answer", answered)
				if waited := time.Since(began); waited < time.Hour || waited > time.Hour+time.Minute {
					t.Errorf("it took %v", waited)
				}
				given := all[session.ApprovalGiven](r, id)
				if len(given) != 1 || given[0].Approved != accept || !given[0].Late {
					t.Errorf("%+v", given)
				}
				if n := len(say.calls()); n != map[bool]int{true: 1}[accept] {
					t.Errorf("%d calls were made", n)
				}
			})
		})
	}
}

// A question without a deadline waits for the person, also while the sandbox is
// still being started.
func TestQuestionDuringAWarmStart(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	ready := make(chan struct{})
	r.workspaces = slow{there(t), r.rig, ready}
	r.set(func(p *agent.Profile) { p.Warm = true })
	r.start()
	id := r.create("go")
	r.awaiting(id)
	close(ready)
	r.until(id, "rest", func(s session.State) bool { return s.Status() == session.Running && !s.Wants() })
	if n := count[session.ApprovalGiven](r.events(id)); n != 0 || len(say.calls()) != 0 {
		t.Fatal("there is an answer that was not given")
	}
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
}

// A pause holds while the sandbox is being started.
func TestPauseDuringAWarmStart(t *testing.T) {
	r := newRig(t)
	m := newGate()
	ready := make(chan struct{})
	r.workspaces = slow{there(t), r, ready}
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(m)
		p.Tools, p.Warm = []tool.Tool{newHand("say")}, true
		return p, nil
	}
	r.start()
	id := r.create("go")
	<-m.asked
	r.update(id, session.State.PauseNow)
	<-m.aborted
	close(ready)
	r.until(id, "rest", func(s session.State) bool { return s.Ready && s.Paused && !s.Wants() })
	r.update(id, session.State.Resume)
	<-m.asked
	m.release <- nil
	r.until(id, "the answer", answered)
	if n := count[session.Claimed](r.events(id)); n != 1 {
		t.Errorf("the session was claimed %d times", n)
	}
}

// Two servers look at the clock of one question. The one that makes the call
// after the other is told that it may have been made.
func TestTwoLoopsAwaitOneAnswer(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	r.more = func(c *agent.Config) { c.Approval.Within = time.Hour }
	r.start()
	id := r.create("go")
	first := r.awaiting(id)
	r.start()
	r.until(id, "the second owner", func(s session.State) bool { return s.Claim > first.Number })
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
	fresh := 0
	for _, c := range say.calls() {
		if !c.Again {
			fresh++
		}
	}
	if fresh > 1 || count[session.ToolReturned](r.events(id)) != 2 { // finish is the other
		t.Errorf("made %+v", say.calls())
	}
}

// hasty is a workspace in which the person is asked about scripts and answers at
// once, before the start of the sandbox is over.
type hasty struct {
	place
	sessions *session.Sessions
}

func (h hasty) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	for _, rule := range []func(session.State) ([]session.Payload, error){
		func(s session.State) ([]session.Payload, error) {
			if s.Checkout != nil {
				return nil, nil
			}
			return []session.Payload{session.CheckedOut{Repository: "octo/app", Branch: "main", Dir: "/workspace/app", Folder: "app", Script: ".openhands/setup.sh"}}, nil
		},
		func(s session.State) ([]session.Payload, error) {
			return scripts.Begin(s, scripts.Scripts{SetUp: "1", Hash: "1", Text: "echo"}, scripts.Terms{Ask: true})
		},
		func(s session.State) ([]session.Payload, error) {
			if _, asked := s.Awaiting(); !asked {
				return nil, nil
			}
			return s.Decide(session.ApprovalGiven{Approved: false})
		},
		func(s session.State) ([]session.Payload, error) {
			return s.Prepared(s.Claim, session.WorkspaceReady{Handle: []byte(`{"id":"x"}`)})
		},
	} {
		if _, err := h.sessions.Update(ctx, id, rule); err != nil {
			return nil, nil, err
		}
	}
	return h.place.Use(ctx, id)
}

// An answer about scripts that comes before the sandbox has started is acted on.
func TestAnswerDuringAWarmStart(t *testing.T) {
	r := newRig(t)
	r.workspaces = hasty{there(t), r.sessions}
	r.start()
	id := session.NewID()
	if _, err := r.sessions.Create(t.Context(), id, session.Created{Owner: "ada", Repository: "octo/app"}, nil); err != nil {
		t.Fatal(err)
	}
	st := r.until(id, "the scripts are skipped", func(s session.State) bool {
		return t.Failed() || s.SetUp != nil && s.Agent == session.AgentAwaitingUser
	})
	if st.Unprepared() || st.Wants() {
		t.Errorf("%+v", st)
	}
}
