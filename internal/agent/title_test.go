package agent_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
)

// The model gives a title after the first turn, once.
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

// What a model says is a title only without what a terminal or a browser would obey.
func TestTitleIsClean(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"\x1b[31mRed\x1b[0m\x07 \x00sail\u202e\u200b":                   "Red sail",
		"\x1b]0;window\x07Tie the \u009b31mknots":                       "Tie the knots",
		"<think>hmm</think>Real":                                        "Real",
		"<think>\nhmm\n\nwell</think>\n\n**Real**":                      "Real",
		"it is about sails</think>\nSet the sail":                       "Set the sail",
		"\n\nTitle: Mast\r\nmore":                                       "Mast",
		"<think>it never ends":                                          "say hello",
		"<thinking>hmm</thinking>":                                      "say hello",
		"\u202e\x00 \"\" ":                                              "say hello",
		"Set " + strings.Repeat("all the sails and ", 9) + "the anchor": "Set all the sails and all the sails and all the…",
		"می\u200cخواهم":                                                 "می\u200cخواهم",
	} {
		r := chat(t, llmtest.Reply{Text: "It is done."}, llmtest.Reply{Text: said})
		r.set(func(p *agent.Profile) { p.Title = true })
		r.start()
		id := r.create("say hello")
		st := r.until(id, "the end", func(s session.State) bool { return len(r.asked()) == 2 && rest(s) && s.Ask == nil })
		if st.Title != want {
			t.Errorf("%q became %q, want %q", said, st.Title, want)
		}
	}
}

// A message does not wait for a title, which is asked for again after its turn.
func TestTitleGivesWay(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	var again atomic.Bool
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if strings.HasPrefix(a.Messages[len(a.Messages)-1].Text, "Task: ") {
			if again.Swap(true) {
				return llmtest.Reply{Text: "Greeting"}
			}
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
	st := r.until(id, "the title", func(s session.State) bool { return s.Title == "Greeting" })
	if st.Turns != 2 || st.Reserved != 0 {
		t.Errorf("after %d turns: reserved %d", st.Turns, st.Reserved)
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
