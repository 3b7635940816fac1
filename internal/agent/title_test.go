package agent_test

import (
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
)

// The first words of the task are the title until the model gives one, once.
func TestTitleFromTheModel(t *testing.T) {
	t.Parallel()
	r := chat(t, llmtest.Reply{Text: "It is fixed."}, llmtest.Reply{Text: "\"Login page: fix the redirect.\"\nHow is that?"}, llmtest.Reply{Text: "Fine."})
	r.set(func(p *agent.Profile) { p.Title = true })
	r.start()
	id := r.create("please fix the login page")
	r.until(id, "the title", func(s session.State) bool { return s.Title == "Login page: fix the redirect" && s.Ask == nil })
	titles := all[session.Titled](r.rig, id)
	if len(titles) != 2 || titles[0].Title != "please fix the login page" || titles[1].ByUser {
		t.Errorf("the titles were %+v", titles)
	}
	if got := r.last(); len(got.Messages) != 1 || !strings.Contains(got.Messages[0].Text, "please fix the login page") || !strings.Contains(got.Messages[0].Text, "It is fixed.") {
		t.Errorf("the model was asked %+v", got)
	}
	r.say(id, "thanks")
	r.until(id, "the second answer", func(s session.State) bool { return answered(s) && s.Turns == 2 })
	if got := r.last().Messages; len(r.asked()) != 3 || got[len(got)-1].Text != "thanks" {
		t.Errorf("the model was asked %d times, last %s", len(r.asked()), texts(r.last()))
	}
}

// A message does not wait for a title, and a title that fails changes nothing.
func TestTitleGivesWay(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if strings.HasPrefix(a.Messages[len(a.Messages)-1].Text, "Task: ") {
			asked <- struct{}{}
			return llmtest.Reply{Text: "A title that", Break: llmtest.Hang}
		}
		return llmtest.Reply{Text: "Hello."}
	})
	r.set(func(p *agent.Profile) { p.Title = true })
	r.start()
	id := r.create("say hello")
	<-asked
	r.say(id, "are you there?")
	st := r.until(id, "the answer", func(s session.State) bool { return answered(s) && s.Turns == 2 && s.Ask == nil })
	if st.Title != "say hello" || st.Reserved != 0 {
		t.Errorf("afterwards: %q, reserved %d", st.Title, st.Reserved)
	}
}

// There is no title without money, nor for who named the conversation.
func TestNoTitle(t *testing.T) {
	t.Parallel()
	r := chat(t, llmtest.Reply{Text: "Hello."})
	r.set(func(p *agent.Profile) { p.Title = true })
	id := r.create("say hello")
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Rename("Mine") })
	r.start()
	st := r.until(id, "the answer", answered)
	if st = r.until(id, "rest", rest); st.Title != "Mine" || len(r.asked()) != 1 {
		t.Errorf("%q after %d calls", st.Title, len(r.asked()))
	}
}
