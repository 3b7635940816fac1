package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// isSummary is true for a request for a summary: it has no tools.
func isSummary(a llmtest.Asked) bool { return strings.Contains(a.System, "memory of a software agent") }

// crowding is a rig whose agent makes so many calls and then ends, with a server
// that counts a token for every four bytes and refuses what does not fit.
type crowding struct {
	*wired
	summaries atomic.Int32
}

func newCrowding(t *testing.T, w llmtest.Wire, steps int, window int, size int) *crowding {
	t.Helper()
	c := &crowding{}
	var step atomic.Int32
	c.wired = newWired(t, w, func(a llmtest.Asked) llmtest.Reply {
		tokens := int64(len(a.Body) / 4)
		if tokens > int64(window) {
			return llmtest.Reply{Status: 400, Code: "context_length_exceeded", Message: "maximum context length exceeded: prompt is too long"}
		}
		if isSummary(a) {
			return llmtest.Reply{Text: fmt.Sprintf("SUMMARY %d", c.summaries.Add(1)), Usage: llm.Usage{Input: tokens, Output: 5}}
		}
		n := int(step.Add(1))
		if n > steps {
			return done("ok")
		}
		return llmtest.Reply{Text: fmt.Sprintf("step %d", n), Usage: llm.Usage{Input: tokens, Output: 5},
			Calls: []llm.Call{called(fmt.Sprintf("a%d", n), "say", fmt.Sprintf(`{"text":"%d"}`, n)), called(fmt.Sprintf("b%d", n), "say", `{"text":"x"}`)}}
	})
	say := newHand("say")
	say.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: string(c.Args) + strings.Repeat("word ", size/5)}, nil
	}
	c.tools(say)
	c.set(func(p *agent.Profile) {
		p.System, p.MaxAsks, p.Condense = "You are an agent.", 1000, true
		p.Info = llm.Info{Window: int64(window), MaxOutput: 500}
	})
	return c
}

// Near the end of the window old history becomes a summary: the task and the
// latest steps stay, calls keep their results, and the provider never has to
// refuse anything.
func TestCondenseNearTheWindow(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			r := newCrowding(t, w, 24, 6000, 1500)
			stop := r.start()
			id := r.create("the task")
			r.until(id, "some history", func(s session.State) bool { return s.Last > 100 })
			stop() // what was condensed is so after a restart too
			r.start()
			r.until(id, "the end", finished)
			if n := len(all[session.Condensed](r.rig, id)); n < 2 {
				t.Fatalf("condensed %d times", n)
			}
			for _, f := range all[session.ModelFailed](r.rig, id) {
				if f.Class != "owner_lost" {
					t.Errorf("%+v", f)
				}
			}
			asked := r.asked()
			// The restart may have lost the answer with the last step, and the request that it interrupted may be noted late.
			if !slices.ContainsFunc(asked, func(a llmtest.Asked) bool {
				return len(a.Messages) > 1 && strings.HasSuffix(a.Messages[0].Text, "the task") && strings.Contains(a.Messages[1].Text, "SUMMARY") &&
					(strings.Contains(texts(a), "step 24") || strings.Contains(texts(a), "step 23"))
			}) {
				t.Errorf("the model was last shown %s", texts(asked[len(asked)-1]))
			}
			for _, a := range asked {
				if isSummary(a) && strings.Count(texts(a), "[Summary of what came before]") > 1 {
					t.Errorf("summaries pile up: %s", texts(a))
				}
			}
		})
	}
}

// A provider that says that the request is too long is believed, whatever we
// thought: also when the window is unknown, and when it is far exceeded.
func TestCondenseOnContextError(t *testing.T) {
	for name, change := range map[string]func(*agent.Profile){
		"window unknown":       func(p *agent.Profile) { p.Info.Window = 0 },
		"window thought wider": func(p *agent.Profile) { p.Info.Window = 1_000_000 },
		"without a summary":    func(p *agent.Profile) { p.Info.Window, p.Condense = 0, false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newCrowding(t, llmtest.Chat, 25, 6000, 1500)
			r.set(change)
			r.start()
			id := r.create("the task")
			r.until(id, "the end", finished)
			if len(all[session.Condensed](r.rig, id)) == 0 || len(all[session.ModelFailed](r.rig, id)) == 0 {
				t.Error("the window was wide enough after all")
			}
			for _, f := range all[session.ModelFailed](r.rig, id) {
				if f.Class != string(llm.ClassContext) {
					t.Errorf("%+v", f)
				}
			}
			for _, a := range r.asked() {
				if text := texts(a); strings.Contains(text, "replaced by this summary") && strings.Count(text, "assistant: step") < 2 {
					t.Errorf("of the latest steps too little is left: %s", text)
				}
			}
			if name == "without a summary" && r.summaries.Load() > 0 {
				t.Error("a summary was asked for all the same")
			}
		})
	}
}

// A conversation that was made with a wide window goes on with a narrow one.
func TestCondenseFarBeyondTheWindow(t *testing.T) {
	r := newCrowding(t, llmtest.Chat, 30, 1_000_000, 1500)
	r.start()
	id := r.create("the task")
	r.until(id, "the end", finished)
	narrow := newCrowding(t, llmtest.Chat, 0, 5000, 0)
	r.set(func(p *agent.Profile) { p.Model, p.Info.Window = narrow.current.Model, 5000 })
	r.say(id, "and now?")
	r.until(id, "the end with a narrow window", func(s session.State) bool { return finished(s) && s.LastSaid < s.Seen })
	if got := narrow.last().Messages; got[0].Text != "the task" || !strings.Contains(texts(narrow.last()), "and now?") {
		t.Errorf("the model was shown %s", texts(narrow.last()))
	}
}

// Without a good summary, a plain list of what was said and done takes its place.
func TestSummaryThatCannotBeHad(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"refused": {Status: 500, Message: "oops"},
		"empty":   {},
		"broken":  {Text: "The user wants something", Break: llmtest.Drop},
	} {
		t.Run(name, func(t *testing.T) {
			var step atomic.Int32
			r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
				if isSummary(a) {
					return reply
				}
				n := step.Add(1)
				if n > 12 {
					return done("ok")
				}
				return llmtest.Reply{Calls: []llm.Call{called("a", "say", fmt.Sprintf(`{"text":"%d"}`, n))}, Usage: llm.Usage{Input: int64(len(a.Body) / 4), Output: 5}}
			})
			say := newHand("say")
			say.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
				return tool.Result{Text: strings.Repeat("word ", 500)}, nil
			}
			r.tools(say)
			r.set(func(p *agent.Profile) {
				p.System, p.MaxAsks, p.Condense, p.Info = "You are an agent.", 100, true, llm.Info{Window: 6000, MaxOutput: 500}
			})
			r.start()
			id := r.create("the task")
			r.until(id, "the end", finished)
			got := all[session.Condensed](r.rig, id)
			if len(got) == 0 || !strings.Contains(got[0].Summary, `[calls say {"text":"`) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// One result that is too long by itself loses its middle, and the agent goes on.
func TestOneResultTooLong(t *testing.T) {
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		last := a.Messages[len(a.Messages)-1]
		switch {
		case len(last.Text) > 9000:
			return llmtest.Reply{Status: 400, Code: "context_length_exceeded", Message: "This model's maximum context length is 4096 tokens."}
		case last.Role == llm.ToolResult:
			if !strings.HasPrefix(last.Text, "begin") || !strings.Contains(last.Text, "end") {
				return llmtest.Reply{Text: "the ends are missing"}
			}
			return llmtest.Reply{Text: "I see both ends."}
		}
		return llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}}
	})
	say := newHand("say")
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "begin" + strings.Repeat(" middle", 5000) + " end"}, nil
	}
	r.tools(say)
	r.start()
	id := r.create("go")
	r.until(id, "the answer", answered)
	if got := all[session.ModelAnswered](r.rig, id); got[len(got)-1].Text != "I see both ends." {
		t.Errorf("%+v", got[len(got)-1])
	}
}

// One message that is too long by itself cannot be helped, and that is said.
func TestNothingToLeaveOut(t *testing.T) {
	r := newCrowding(t, llmtest.Chat, 1, 1000, 10)
	r.start()
	id := r.create(strings.Repeat("a long task ", 1000))
	st := r.until(id, "the error", inError)
	if st.ErrorID != "STATUS$ERROR_LLM_CONTEXT_WINDOW" || st.Wants() {
		t.Errorf("%+v", st)
	}
}

// A message that was said during an answer stands behind it, though it is older:
// history is cut around both.
func TestCondenseAroundAMessageDuringAnAnswer(t *testing.T) {
	var step atomic.Int32
	asked, goOn := make(chan struct{}), make(chan struct{})
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if isSummary(a) {
			return llmtest.Reply{Text: "SUMMARY"}
		}
		n := step.Add(1)
		if n <= 14 {
			asked <- struct{}{}
			<-goOn
			return llmtest.Reply{Calls: []llm.Call{called("a", "say", fmt.Sprintf(`{"text":"%d"}`, n))}, Usage: llm.Usage{Input: int64(len(a.Body) / 4), Output: 5}}
		}
		return done("ok")
	})
	say := newHand("say")
	say.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: strings.Repeat("word ", 400)}, nil
	}
	r.tools(say)
	r.set(func(p *agent.Profile) {
		p.System, p.MaxAsks, p.Condense, p.Info = "You are an agent.", 100, true, llm.Info{Window: 5000, MaxOutput: 500}
	})
	r.start()
	id := r.create("the task")
	for n := range 14 {
		<-asked
		r.say(id, fmt.Sprintf("by the way %d", n))
		goOn <- struct{}{}
	}
	r.until(id, "the end", finished)
	if len(all[session.Condensed](r.rig, id)) == 0 {
		t.Fatal("nothing was condensed")
	}
	if n := count[session.Claimed](r.events(id)); n != 1 {
		t.Errorf("the session was claimed %d times", n)
	}
	if got := texts(r.last()); !strings.Contains(got, "by the way 13") {
		t.Errorf("the model was shown %s", got)
	}
}
