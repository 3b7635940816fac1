package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// step is how a trajectory is written in these tests: a message, or an answer.
type step struct {
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Call is the text that the tool say is called with, End that of finish.
	Call string `json:"call,omitempty"`
	End  string `json:"end,omitempty"`
}

func script(raw string) ([]agent.Recorded, error) {
	var steps []step
	if json.Unmarshal([]byte(raw), &steps) != nil {
		return nil, errors.New("it is no list of events")
	}
	var out []agent.Recorded
	for _, s := range steps {
		r := agent.Recorded{Text: s.Agent}
		switch {
		case s.User != "":
			r.Said = &session.UserSaid{Text: s.User}
		case s.Call != "":
			r.Calls = []session.ToolCall{{ID: "same", Name: "say", Args: json.RawMessage(`{"text":"` + s.Call + `"}`)}}
		case s.End != "":
			r.Calls = []session.ToolCall{{ID: "same", Name: "finish", Args: json.RawMessage(`{"message":"` + s.End + `"}`)}}
		}
		out = append(out, r)
	}
	return out, nil
}

// replaying is a rig that knows trajectories, with a conversation that replays one.
func replaying(t *testing.T, raw, then string, replies ...llmtest.Reply) (*wired, *hand, session.ID) {
	t.Helper()
	r, say := chat(t, replies...), newHand("say")
	r.tools(say)
	r.more = func(c *agent.Config) { c.Script = script }
	id := session.NewID()
	var first *session.UserSaid
	if then != "" {
		first = &session.UserSaid{Text: then}
	}
	if _, err := r.sessions.Create(t.Context(), id, session.Created{Owner: "ada", Replay: raw}, first); err != nil {
		t.Fatal(err)
	}
	return r, say, id
}

func replayed(st session.State) bool { return st.ReplayDone && rest(st) }

// What was said is said again, what was called is called again, without a model.
func TestReplay(t *testing.T) {
	r, say, id := replaying(t, `[{"user":"one"},{"call":"a"},{"call":"b"},{"end":"first part"},{"user":"two"},{"agent":"just words"},{"user":"three"},{"call":"c"},{"end":"all"}]`, "")
	r.start()
	st := r.until(id, "the end", replayed)
	if st.Agent != session.AgentFinished || st.Title != "one" || len(r.asked()) != 0 {
		t.Errorf("%+v after %d requests", st, len(r.asked()))
	}
	if made := say.calls(); len(made) != 3 || made[0].ID == made[1].ID || string(made[2].Args) != `{"text":"c"}` {
		t.Errorf("made %+v", made)
	}
	var said []string
	for _, s := range all[session.UserSaid](r.rig, id) {
		said = append(said, s.Text)
	}
	if got := strings.Join(said, ","); got != "one,two,three" {
		t.Errorf("said %s", got)
	}
	var states []string
	for _, e := range all[session.TurnEnded](r.rig, id) {
		states = append(states, string(e.State))
	}
	if got := strings.Join(states, ","); got != "finished,awaiting_user_input,finished" {
		t.Errorf("the turns ended %s", got)
	}
}

// After the recording comes the message that the conversation was made with.
func TestMessageAfterAReplay(t *testing.T) {
	r, _, id := replaying(t, `[{"user":"one"},{"call":"a"},{"end":"done"}]`, "go on", done("ok"))
	r.start()
	r.until(id, "the end", func(s session.State) bool { return replayed(s) && len(r.asked()) == 1 })
	if got := r.last().Messages; len(got) != 6 || got[5].Text != "go on" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

// A recording that ends in the middle is taken up by the model.
func TestReplayWithoutAnEnd(t *testing.T) {
	r, _, id := replaying(t, `[{"user":"one"},{"call":"a"}]`, "", done("ok"))
	r.start()
	r.until(id, "the end", func(s session.State) bool { return replayed(s) && finished(s) })
	if got := r.asked(); len(got) != 1 || len(got[0].Messages) != 3 {
		t.Errorf("the model was shown %d requests", len(got))
	}
}

func TestBadTrajectory(t *testing.T) {
	r, _, id := replaying(t, `{}`, "go", done("ok"))
	r.start()
	st := r.until(id, "the failure", func(s session.State) bool { return s.Failed })
	if !strings.Contains(st.Reason, "it is no list of events") || len(r.asked()) != 0 {
		t.Errorf("%+v", st)
	}
}

// A restart in the middle neither leaves out nor repeats a step.
func TestRestartDuringAReplay(t *testing.T) {
	r, say, id := replaying(t, `[{"user":"one"},{"call":"a"},{"call":"b"},{"call":"c"},{"end":"all"}]`, "")
	began := make(chan struct{})
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if string(c.Args) != `{"text":"b"}` || c.Again {
			return tool.Result{Text: "ok"}, nil
		}
		close(began)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	stop := r.start()
	<-began
	stop()
	r.start()
	r.until(id, "the end", replayed)
	made := say.calls()
	if len(made) != 4 || made[1].ID != made[2].ID || !made[2].Again {
		t.Errorf("made %+v", made)
	}
	if n := count[session.ToolReturned](r.events(id)); n != 4 {
		t.Errorf("%d results", n)
	}
}

// The limit on steps holds, and a message goes beyond it as always.
func TestReplayKeepsTheLimit(t *testing.T) {
	r, say, id := replaying(t, `[{"user":"one"},{"call":"a"},{"call":"b"},{"call":"c"},{"end":"all"}]`, "", done("ok"))
	r.set(func(p *agent.Profile) { p.MaxAsks = 2 })
	r.start()
	st := r.until(id, "the limit", inError)
	if st.ErrorID != "STATUS$ERROR_MAX_ITERATIONS" || st.Wants() || len(say.calls()) != 2 {
		t.Errorf("%+v after %d calls", st, len(say.calls()))
	}
	r.update(id, session.State.Resume)
	r.until(id, "the end", replayed)
	if len(say.calls()) != 3 || len(r.asked()) != 0 {
		t.Errorf("%d calls, %d requests", len(say.calls()), len(r.asked()))
	}
}

// Recorded calls are asked about like any; after a no, the model takes over.
func TestReplayAsks(t *testing.T) {
	for name, test := range map[string]struct {
		given session.ApprovalGiven
		made  int
		asked int
		state session.AgentState
	}{
		"yes":                {session.ApprovalGiven{Approved: true}, 2, 0, session.AgentFinished},
		"no":                 {session.ApprovalGiven{}, 0, 0, session.AgentAwaitingUser},
		"no, and a word why": {session.ApprovalGiven{Reason: "not now"}, 0, 1, session.AgentFinished},
	} {
		t.Run(name, func(t *testing.T) {
			r, say, id := replaying(t, `[{"user":"one"},{"call":"a"},{"call":"b"},{"end":"all"}]`, "", done("ok"))
			r.set(func(p *agent.Profile) { p.Confirm = true })
			r.start()
			r.awaiting(id)
			r.decide(id, test.given)
			if test.given.Approved {
				r.until(id, "the second question", func(s session.State) bool { _, ok := s.Awaiting(); return ok && s.Replay == 3 })
				r.decide(id, test.given)
			}
			st := r.until(id, "the end", replayed)
			if st.Agent != test.state || len(say.calls()) != test.made || len(r.asked()) != test.asked {
				t.Errorf("%s after %d calls and %d requests", st.Agent, len(say.calls()), len(r.asked()))
			}
		})
	}
}

// What a person says during the replay is answered after it, by the model.
func TestMessageDuringAReplay(t *testing.T) {
	r, say, id := replaying(t, `[{"user":"one"},{"call":"a"},{"end":"done"},{"user":"two"},{"end":"all"}]`, "", done("ok"))
	m := &memory{}
	more := r.more
	r.more = func(c *agent.Config) { more(c); c.Recall = m.recall }
	began, goOn := make(chan struct{}), make(chan struct{})
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		close(began)
		<-goOn
		return tool.Result{Text: "ok"}, nil
	}
	r.start()
	<-began
	r.say(id, "use docker")
	close(goOn)
	r.until(id, "the answer", func(s session.State) bool { return replayed(s) && len(r.asked()) == 1 })
	if got := texts(r.last()); !strings.Contains(got, "use docker") || !strings.Contains(got, "two") {
		t.Errorf("the model was shown %s", got)
	}
}
