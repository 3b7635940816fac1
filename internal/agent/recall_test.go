package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// memory is what a Recall of a test's own was asked.
type memory struct {
	mu    sync.Mutex
	asked []string
	fail  bool
}

func (m *memory) recall(_ context.Context, _ session.State, said session.UserSaid, o agent.Occasion) (session.Recalled, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, said.Text)
	switch {
	case m.fail:
		return session.Recalled{}, errors.New("the repository is gone")
	case o.First:
		return session.Recalled{Text: "You work in /workspace."}, nil
	case strings.Contains(said.Text, "docker") && !slices.Contains(o.Known, "docker"):
		return session.Recalled{Text: "About docker: use rootless.", Items: []session.Knowledge{{Name: "docker", Trigger: "docker"}}}, nil
	}
	return session.Recalled{}, nil
}

// Each message is looked up once: the first is told about the workspace, others
// what their words call for, and nothing is told twice.
func TestRecall(t *testing.T) {
	r := chat(t, calls(called("a", "say", `{"text":"x"}`)), done("ok"))
	say := newHand("say")
	began, goOn := make(chan struct{}, 9), make(chan struct{})
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		began <- struct{}{}
		<-goOn
		return tool.Result{Text: "said"}, nil
	}
	r.tools(say)
	m := &memory{}
	r.more = func(c *agent.Config) { c.Recall = m.recall }
	stop := r.start()
	id := r.create("first")
	<-began
	r.say(id, "use docker")
	close(goOn)
	r.until(id, "the end", finished)
	stop()
	r.start()
	r.say(id, "docker again")
	r.until(id, "the end", func(s session.State) bool { return finished(s) && s.LastSaid < s.Seen })
	if want := []string{"first", "use docker", "docker again"}; !slices.Equal(m.asked, want) {
		t.Errorf("looked up %q", m.asked)
	}
	got := r.last().Messages
	for i, want := range map[int]string{0: "You work in /workspace.", 1: "first", 4: "About docker: use rootless.", 5: "use docker", len(got) - 1: "docker again"} {
		if got[i].Text != want {
			t.Errorf("message %d is %q", i, got[i].Text)
		}
	}
	if of := all[session.Recalled](r.rig, id); len(of) != 2 || of[0].Of != 2 {
		t.Errorf("recalled %+v", of)
	}
	// Each result belongs to an event of its own, never to the message.
	events := r.events(id)
	for i, p := range events {
		got, ok := p.(session.Recalled)
		if !ok {
			continue
		}
		if got.Asked != int64(i) {
			t.Fatalf("event %d belongs to event %d", i+1, got.Asked)
		}
		asked, ok := events[i-1].(session.RecallAsked)
		if want := map[bool]string{true: "workspace_context", false: "knowledge"}[got.Of == 2]; !ok || asked.Of != got.Of || asked.Type != want {
			t.Errorf("event %d is %+v", got.Asked, events[i-1])
		}
	}
}

// What is said after an interruption is looked up too.
func TestRecallAfterAnInterruption(t *testing.T) {
	r := chat(t, sayTwice, done("ok"))
	say := newHand("say")
	began := make(chan struct{}, 1)
	say.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	r.tools(say)
	m := &memory{}
	r.more = func(c *agent.Config) { c.Recall = m.recall }
	r.start()
	id := r.create("first")
	<-began
	r.update(id, session.State.PauseNow)
	r.say(id, "use docker")
	r.until(id, "the end", finished)
	if got := r.last().Messages; got[len(got)-2].Text != "About docker: use rootless." || got[len(got)-1].Text != "use docker" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

// A memory that fails does not prevent an answer.
func TestRecallThatFails(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "yes"})
	r.more = func(c *agent.Config) { c.Recall = (&memory{fail: true}).recall }
	r.start()
	id := r.create("go")
	r.until(id, "an answer", answered)
	if got := r.last().Messages[0].Text; got != "go" {
		t.Errorf("the model was shown %q", got)
	}
}

const dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Images are fetched once and stand in the request themselves; one that cannot
// be had is a note, and no reason not to answer.
func TestImages(t *testing.T) {
	r := chat(t, calls(called("a", "say", `{"text":"x"}`)), done("ok"))
	r.tools(newHand("say"))
	var mu sync.Mutex
	fetched := map[string]int{}
	r.more = func(c *agent.Config) {
		c.Picture = func(_ context.Context, url string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if fetched[url]++; strings.Contains(url, "lost") {
				return "", errors.New("the server says 404")
			}
			return dot, nil
		}
	}
	r.start()
	id := session.NewID()
	if _, err := r.sessions.Create(t.Context(), id, session.Created{Owner: "ada"}, &session.UserSaid{Text: "look", Images: []string{"https://a.test/x.png", "https://a.test/lost.png"}}); err != nil {
		t.Fatal(err)
	}
	r.until(id, "the end", finished)
	for _, a := range r.asked() {
		m := a.Messages[0]
		if !slices.Equal(m.Images, []string{dot}) || !strings.Contains(m.Text, "An image could not be loaded: the server says 404") {
			t.Errorf("the model was shown %q and %d images", m.Text, len(m.Images))
		}
	}
	if fetched["https://a.test/x.png"] != 1 || fetched["https://a.test/lost.png"] != 1 {
		t.Errorf("fetched %v", fetched)
	}
	if said := all[session.UserSaid](r.rig, id)[0]; said.Images[0] != "https://a.test/x.png" {
		t.Errorf("the log has %v", said.Images)
	}
}

// Images that stay when the rest is summarised are not fetched again.
func TestImagesSurviveASummary(t *testing.T) {
	c := newCrowding(t, llmtest.Chat, 20, 6000, 1500)
	var fetched int
	c.more = func(x *agent.Config) {
		x.Picture = func(context.Context, string) (string, error) { fetched++; return dot, nil }
	}
	stop := c.start()
	id := session.NewID()
	if _, err := c.sessions.Create(t.Context(), id, session.Created{Owner: "ada"}, &session.UserSaid{Text: "look", Images: []string{"https://a.test/x.png"}}); err != nil {
		t.Fatal(err)
	}
	c.until(id, "the end", finished)
	stop()
	if len(all[session.Condensed](c.rig, id)) == 0 || fetched != 1 {
		t.Errorf("fetched %d times", fetched)
	}
	if got := c.last().Messages[0]; !slices.Equal(got.Images, []string{dot}) {
		t.Errorf("the image is gone: %+v", got)
	}
}

// The conversation is named after its first message, unless a person named it.
func TestTitle(t *testing.T) {
	for name, want := range map[string]string{"": "Fix the parser", "Mine": "Mine"} {
		t.Run(name, func(t *testing.T) {
			var r *wired
			var id session.ID
			r = newWired(t, llmtest.Chat, func(llmtest.Asked) llmtest.Reply {
				if name != "" {
					r.update(id, func(s session.State) ([]session.Payload, error) { return s.Rename(name) })
				}
				return llmtest.Reply{Text: "yes"}
			})
			id = r.create("Fix the parser\nand more")
			r.start()
			if st := r.until(id, "an answer", answered); st.Title != want {
				t.Errorf("it is called %q", st.Title)
			}
		})
	}
}

// Instructions and language are part of what the model is told first.
func TestInstructionsAndLanguage(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "ja"})
	r.set(func(p *agent.Profile) { p.System = agent.System(agent.SystemInput{Language: "de"}) })
	id := session.NewID()
	if _, err := r.sessions.Create(t.Context(), id, session.Created{Owner: "ada", Instructions: "Be brief."}, &session.UserSaid{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.until(id, "an answer", answered)
	system := r.last().System
	if !strings.Contains(system, "Be brief.") || !strings.Contains(system, "with the tag de.") {
		t.Errorf("the model was told %s", system)
	}
	if b := all[session.Briefed](r.rig, id); len(b) != 1 || b[0].Prompt != system {
		t.Errorf("the log has %d briefings", len(b))
	}
}

// Tools that come and go are offered from the next step on, and paid for.
func TestToolsThatComeAndGo(t *testing.T) {
	r := chat(t, calls(called("a", "say", `{"text":"x"}`)), calls(called("b", "late", `{"text":"y"}`)), done("ok"))
	say, late := newHand("say"), newHand("late")
	late.spec.Description = strings.Repeat("It does a lot. ", 2000)
	var mu sync.Mutex
	var more []tool.Tool
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		more = []tool.Tool{late}
		return tool.Result{Text: "said"}, nil
	}
	r.tools(say)
	r.set(func(p *agent.Profile) {
		p.Info = llm.Info{Price: llm.Price{Input: 1}, Priced: true, MaxOutput: 100}
		p.More = func(context.Context) []tool.Tool {
			mu.Lock()
			defer mu.Unlock()
			return more
		}
	})
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	if got := fmt.Sprint(r.asked()[0].Tools, r.asked()[1].Tools); got != "[say finish] [say finish late]" || len(late.calls()) != 1 {
		t.Errorf("offered %s", got)
	}
	if asked := all[session.ModelAsked](r.rig, id); asked[1].Reserved < 30_000*1000 || asked[2].Reserved >= asked[1].Reserved {
		t.Errorf("reserved %v, %v and %v", asked[0].Reserved, asked[1].Reserved, asked[2].Reserved)
	}
}

// What is said between reading the history and asking about it is read first:
// it is looked up, paid for and shown like everything else.
func TestMessageBetweenReadingAndAsking(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "yes"})
	m := &memory{}
	r.more = func(c *agent.Config) { c.Recall = m.recall }
	other, said := session.New(r.log), false // another server's
	fault := func(b session.Batch) error {
		if said || !slices.ContainsFunc(b.Events, func(e session.Event) bool { return e.Payload.Kind() == session.KindModelAsked }) {
			return nil
		}
		said = true
		_, err := other.Update(t.Context(), b.ID, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "use docker"}) })
		return err
	}
	r.fault.Store(&fault)
	r.start()
	id := r.create("first")
	r.until(id, "an answer", answered)
	if got := r.asked(); len(got) != 1 || len(got[0].Messages) != 4 || got[0].Messages[2].Text != "About docker: use rootless." {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

// What is recalled is recorded together with the call that contains it.
func TestRecalledWithItsCall(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "yes"})
	m := &memory{}
	r.more = func(c *agent.Config) { c.Recall = m.recall }
	together := false
	seen := func(b session.Batch) error {
		has := func(k session.Kind) bool {
			return slices.ContainsFunc(b.Events, func(e session.Event) bool { return e.Payload.Kind() == k })
		}
		together = together || has(session.KindRecalled) && has(session.KindModelAsked)
		return nil
	}
	r.fault.Store(&seen)
	r.start()
	id := r.create("first")
	r.until(id, "an answer", answered)
	if !together {
		t.Error("they were recorded one after the other")
	}
	if got := r.last().Messages; len(got) != 2 || got[0].Text != "You work in /workspace." {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}
