package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/finish"
)

// wires are all formats that a model server speaks.
var wires = []llmtest.Wire{llmtest.Chat, llmtest.Responses, llmtest.Anthropic, llmtest.Gemini}

// wired is a rig whose model is a server, reached over HTTP as in production.
type wired struct {
	*rig
	server *llmtest.Server

	mu      sync.Mutex
	current agent.Profile
}

// newWired makes a rig with a scripted server in one wire. Whatever the loop
// sends must be well formed.
func newWired(t *testing.T, w llmtest.Wire, answer func(llmtest.Asked) llmtest.Reply) *wired {
	t.Helper()
	r := &wired{rig: newRig(t), server: llmtest.New(t, answer)}
	r.current = profile(reach(t, r.server.Config(w, "test")))
	r.current.ModelName = r.server.Config(w, "test").Model
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.current, nil
	}
	t.Cleanup(func() {
		for _, c := range r.server.Complaints() {
			t.Errorf("a request was not well formed: %s", c)
		}
	})
	return r
}

// chat is newWired with replies in turn.
func chat(t *testing.T, replies ...llmtest.Reply) *wired {
	return newWired(t, llmtest.Chat, llmtest.Script(replies...))
}

// reach opens a model that can see.
func reach(t *testing.T, c llm.Config) llm.Model {
	t.Helper()
	sees := true
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c.Client = &http.Client{Transport: transport}
	m, err := connect.Open(c, catalogue.New(map[string]catalogue.Override{c.Model: {Images: &sees}}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// set changes what the next worker works with.
func (r *wired) set(change func(*agent.Profile)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.current)
}

// tools gives the model some, and finish.
func (r *wired) tools(tools ...tool.Tool) {
	r.set(func(p *agent.Profile) { p.Tools = append(tools, finish.Tool{}) })
}

// asked are the requests so far, in their order.
func (r *wired) asked() []llmtest.Asked { return r.server.Asked() }

// last is the newest request.
func (r *wired) last() llmtest.Asked {
	r.t.Helper()
	all := r.asked()
	if len(all) == 0 {
		r.t.Fatal("the model was not asked")
	}
	return all[len(all)-1]
}

func (r *rig) say(id session.ID, text string) session.State {
	r.t.Helper()
	return r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: text}) })
}

func (r *rig) decide(id session.ID, g session.ApprovalGiven) session.State {
	r.t.Helper()
	return r.update(id, func(s session.State) ([]session.Payload, error) { return s.Decide(g) })
}

// awaiting waits until the person is asked about a call.
func (r *rig) awaiting(id session.ID) session.OpenCall {
	r.t.Helper()
	st := r.until(id, "a question", func(s session.State) bool { _, ok := s.Awaiting(); return ok })
	open, _ := st.Awaiting()
	return open
}

// all are the payloads of one kind, in order.
func all[P session.Payload](r *rig, id session.ID) []P {
	r.t.Helper()
	var out []P
	for _, e := range r.events(id) {
		if p, ok := e.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

func finished(st session.State) bool { return st.Agent == session.AgentFinished && !st.Pending() }

func inError(st session.State) bool { return st.Agent == session.AgentError && !st.InTurn }

func rest(st session.State) bool {
	return st.Status() != session.Starting && !st.Wants() && !st.InTurn
}

// called is a call as a model writes it.
func called(id, name, args string) llm.Call {
	return llm.Call{ID: id, Name: name, Args: json.RawMessage(args)}
}

// calls is an answer of calls alone.
func calls(c ...llm.Call) llmtest.Reply { return llmtest.Reply{Calls: c} }

// done is an answer that ends the task.
func done(text string) llmtest.Reply {
	args, _ := json.Marshal(map[string]string{"message": text})
	return calls(called("the-end", "finish", string(args)))
}

// hand is a tool of a test's own, which remembers its calls.
type hand struct {
	spec tool.Spec
	run  func(ctx context.Context, c tool.Call) (tool.Result, error)

	mu   sync.Mutex
	made []tool.Call
}

// takesText is a schema with one argument.
const takesText = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

// newHand makes a tool that says what it was given.
func newHand(name string) *hand {
	return &hand{spec: tool.Spec{Name: name, Description: "Says it.", Schema: json.RawMessage(takesText)}}
}

func (h *hand) Spec() tool.Spec { return h.spec }

func (h *hand) Run(ctx context.Context, _ tool.Box, c tool.Call) (tool.Result, error) {
	h.mu.Lock()
	h.made = append(h.made, c)
	h.mu.Unlock()
	if h.run != nil {
		return h.run(ctx, c)
	}
	return tool.Result{Text: "did " + string(c.Args)}, nil
}

// calls are those that were made so far.
func (h *hand) calls() []tool.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.made)
}

// texts are the last messages of a request, with who said them.
func texts(a llmtest.Asked) string {
	var b strings.Builder
	for _, m := range a.Messages {
		b.WriteString(string(m.Role) + ": " + m.Text)
		for _, c := range m.Calls {
			b.WriteString(" " + c.Name + string(c.Args))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// What a model writes is shown as it comes, masked just as it is kept.
func TestFragmentsHoldNoSecrets(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			r := newWired(t, w, llmtest.Script(llmtest.Reply{Text: "it is hunter2-hunter2, I think", Fragment: 3}))
			r.set(func(p *agent.Profile) {
				p.Masker = secret.NewMasker("hunter2-hunter2")
			})
			r.start()
			id := r.create("what is it?")
			r.until(id, "an answer", answered)
			said := all[session.ModelAnswered](r.rig, id)[0].Text
			if got := r.deltas.soFar(); got != said || strings.Contains(got, "hunter2") || !strings.HasSuffix(got, ", I think") {
				t.Errorf("shown %q, kept %q", got, said)
			}
		})
	}
}
