package agent_test

import (
	"context"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/live"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// The end of what a command wrote may be the beginning of a secret and is not shown until
// more is known. If the command is interrupted first, its result has that end too, masked
// if it is long: a command that prints a secret again and again is cut off in one.
func TestInterruptedOutputIsWhole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wrote []string
		want  string
	}{
		"beginning of a secret":          {[]string{"one\nhunter2"}, "one\nhunter2"},
		"most of a secret":               {[]string{"one\nhunter2-hunter2\nhunter2-hunter"}, "one\n" + secret.Mask + "\n" + secret.Mask},
		"nothing else":                   {[]string{"h", "u", "n"}, "hun"},
		"not a secret in the end":        {[]string{"one\nhunt", "ing"}, "one\nhunting"},
		"two beginnings":                 {[]string{"hunter", " hunt"}, "hunter hunt"},
		"a secret that begins a longer":  {[]string{"one\nhunter2-", "hunter2"}, "one\n" + secret.Mask},
		"and then more of the longer":    {[]string{"one\nhunter2-hunter2", "-lo"}, "one\n" + secret.Mask},
		"the longer":                     {[]string{"one\nhunter2-hunter2", "-long."}, "one\n" + secret.Mask + "."},
		"a character that is cut in two": {[]string{"one h\xc3"}, "one h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWired(t, wires[0], llmtest.Script(llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}}))
			wrote := make(chan struct{})
			say := newHand("say")
			say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
				for _, text := range test.wrote {
					c.Live([]byte(text))
				}
				close(wrote)
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			r.tools(say)
			r.set(func(p *agent.Profile) { p.Masker = secret.NewMasker("hunter2-hunter2", "hunter2-hunter2-long") })
			hub := live.New(r.log)
			r.more = func(c *agent.Config) { c.Deltas = hub }
			r.sessions.Written(hub.Written)
			r.start()
			id := r.create("go")
			<-wrote
			r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
			got := all[session.ToolReturned](r.rig, id)
			if want := test.want + "\n[Interrupted by stop; the output ends here.]"; len(got) != 1 || got[0].Output != want {
				t.Errorf("%+v, wanted the output %q", got, want)
			}
		})
	}
}

// Tools that show parts of a text can mask it before.
func TestToolsCanMask(t *testing.T) {
	r := newWired(t, wires[0], llmtest.Script(llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}}))
	masked := make(chan string, 1)
	say := newHand("say")
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		text := "no mask"
		if c.Mask != nil {
			text = c.Mask("it is hunter2-hunter2")
		}
		masked <- text
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	r.tools(say)
	r.set(func(p *agent.Profile) { p.Masker = secret.NewMasker("hunter2-hunter2") })
	r.start()
	id := r.create("go")
	if got := <-masked; !strings.HasPrefix(got, "it is ") || strings.Contains(got, "hunter2") {
		t.Errorf("got %q", got)
	}
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
}
