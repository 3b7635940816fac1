package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// killable is a server in a separate process, with a conversation whose first command, which prints "all made", has finished.
func killable(t *testing.T, args []string, command string) (b *box, process *exec.Cmd, id string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		t.Fatal(err)
	}
	b, process = spawn(t, dir, args...)
	b.demo("scripted/demo")
	id = b.create(command)
	b.said(id, 0, "all made")
	return b, process, id
}

// kill kills a server.
func kill(process *exec.Cmd) {
	_ = process.Process.Kill()
	_ = process.Wait()
}

// forkConfig are models of which every call costs a tenth of a dollar, one with a
// small window, and one that costs nothing.
const forkConfig = `
models:
  openai/forker: {window: 100000, max_output: 1000, input: 0, output: 100}
  openai/spender: {window: 100000, max_output: 1000, input: 0, output: 100}
  openai/crammed: {window: 20000, max_output: 1000}
  openai/second: {window: 100000, max_output: 1000, input: 0, output: 0}
`

// obeys runs what people write after a dollar sign, and then says that it is done.
func obeys(a llmtest.Asked) llmtest.Reply {
	r := llmtest.Reply{Text: "Done."}
	last := a.Messages[len(a.Messages)-1]
	if command, ok := strings.CutPrefix(last.Text, "$ "); ok && last.Role == llm.User {
		r = calls(a, shell(command))
	}
	r.Usage = llm.Usage{Input: 100, Output: 1000}
	return r
}

// needsCopies skips a test where workspaces cannot be copied.
func needsCopies(t *testing.T) {
	t.Helper()
	switch {
	case bestDriver(t) == "local":
	case os.Getenv("CI") == "true":
		t.Fatal("no local sandbox can be had")
	default:
		t.Skip("SKIPPED: no local sandbox can be had, and only its workspaces are copied")
	}
}

// What is chosen for one conversation, and copies of conversations, from the API to
// the model and the sandbox.
func TestForksAndOverrides(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	for name, test := range map[string]func(*testing.T, *lab){
		"in the middle": forkInTheMiddle, "open call": forkWhileACallIsOpen, "condensed": forkAfterCondensation,
		"model": modelOfAConversation, "approval": approvalOfAConversation, "budget": budgetOfAConversation, "native events": nativeEvents,
	} {
		t.Run(name, func(t *testing.T) { test(t, l) })
	}
}

// fork makes a copy that goes away with the test.
func (p *person) fork(id string, in api.ForkConversation) string {
	p.t.Helper()
	made, err := p.client.Fork(p.t.Context(), id, "", in)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.drop(made.ConversationID) })
	return made.ConversationID
}

// shown is what the person's model was shown last.
func (p *person) shown() string {
	all := p.requests()
	return string(all[len(all)-1].Body)
}

// A conversation is forked in its middle: both have the history up to there and the
// files of now, and from then on each has its own, and its own money.
func forkInTheMiddle(t *testing.T, l *lab) {
	p := l.person(t, "forker", obeys)
	id := p.begin("$ echo ONE | tee kept")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	at := p.last(id)
	p.ask(id, "$ echo TWO | tee kept", "awaiting_user_input")
	other := p.fork(id, api.ForkConversation{EventID: api.Some(at)})

	got := observed(t, p.ask(other, "$ cat kept; echo THREE > kept", "awaiting_user_input"), "run")
	if !strings.Contains(got, "TWO") {
		t.Errorf("the files are not those of now: %s", got)
	}
	if s := p.shown(); !strings.Contains(s, "echo ONE") || strings.Contains(s, "echo TWO") || !strings.Contains(s, "echo THREE") {
		t.Errorf("the model of the copy is shown %s", s)
	}
	if got := observed(t, p.ask(id, "$ cat kept", "awaiting_user_input"), "run"); !strings.Contains(got, "TWO") {
		t.Errorf("the copy has changed the original: %s", got)
	}
	if s := p.shown(); !strings.Contains(s, "echo TWO") || strings.Contains(s, "echo THREE") {
		t.Errorf("the model of the original is shown %s", s)
	}
	var sum float64
	for one, want := range map[string]float64{id: 0.6, other: 0.2} {
		c, err := p.client.Conversation(t.Context(), one)
		if err != nil || math.Abs(c.AccumulatedCost-want) > 1e-9 {
			t.Errorf("%s cost %g, want %g; %v", one, c.AccumulatedCost, want, err)
		}
		sum += c.AccumulatedCost
	}
	if u, err := p.client.Usage(t.Context(), ""); err != nil || math.Abs(u.Spent-sum) > 1e-9 {
		t.Errorf("the ledger says %+v, want %g; %v", u, sum, err)
	}
	// A copy of a copy, after a stop.
	if _, err := p.client.Stop(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	third := p.fork(other, api.ForkConversation{Title: api.Some("Third")})
	if got := observed(t, p.ask(third, "$ cat kept", "awaiting_user_input"), "run"); !strings.Contains(got, "THREE") {
		t.Errorf("the copy of the copy has %s", got)
	}
}

// While the agent works a copy can be made: it ends before the call that is open,
// which goes on in the original.
func forkWhileACallIsOpen(t *testing.T, l *lab) {
	p := l.person(t, "opener", obeys)
	id := p.begin("$ echo ONE > kept")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	at := p.last(id)
	if err := p.client.Say(t.Context(), id, "$ echo begun; until [ -e go ]; do sleep 0.1; done; echo GONE ON", ""); err != nil {
		t.Fatal(err)
	}
	p.follow(id, at, func(it client.LegacyItem) bool { return it.Delta != nil && strings.Contains(it.Delta.Text, "begun") })
	other := p.fork(id, api.ForkConversation{})
	if got := observed(t, p.ask(other, "$ cat kept", "awaiting_user_input"), "run"); !strings.Contains(got, "ONE") {
		t.Errorf("%s", got)
	}
	if s := p.shown(); !strings.Contains(s, "echo begun") || strings.Count(s, `"role":"tool"`) != 2 {
		t.Errorf("the message is history and its call is not: %s", s)
	}
	at = p.last(id)
	p.upload(id, map[string]string{"go": ""})
	p.follow(id, at, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "run"); !strings.Contains(got, "GONE ON") {
		t.Errorf("the original did not go on: %s", got)
	}
}

// What was condensed is so in a copy that was made after it, and not in one that was
// made before it.
func forkAfterCondensation(t *testing.T, l *lab) {
	p := l.person(t, "crammed", func(a llmtest.Asked) llmtest.Reply {
		if len(a.Tools) == 0 {
			return llmtest.Reply{Text: "THE SUMMARY: much was said."}
		}
		r := llmtest.Reply{Text: "I heard you.", Usage: llm.Usage{Input: 1000, Output: 10}}
		if len(a.Messages) >= 7 {
			r.Usage.Input = 19_000
		}
		return r
	})
	id := p.begin("This is said at first.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	for i := range 3 {
		p.ask(id, fmt.Sprintf("This is said as number %d.", i), "awaiting_user_input")
	}
	before := p.last(id)
	p.ask(id, "This is said as number 3.", "awaiting_user_input")
	p.ask(id, "This is said as number 4.", "awaiting_user_input")
	if !strings.Contains(kinds(p.events(id)), "condensation") {
		t.Fatalf("nothing was condensed: %s", kinds(p.events(id)))
	}
	after, earlier := p.fork(id, api.ForkConversation{}), p.fork(id, api.ForkConversation{EventID: api.Some(before - 3)})
	p.ask(after, "This is said in the copy.", "awaiting_user_input")
	if s := p.shown(); !strings.Contains(s, "THE SUMMARY") || strings.Contains(s, "number 0") || !strings.Contains(s, "said in the copy") {
		t.Errorf("the model is shown %s", s)
	}
	p.ask(earlier, "This is said in the copy.", "awaiting_user_input")
	if s := p.shown(); strings.Contains(s, "THE SUMMARY") || !strings.Contains(s, "number 0") {
		t.Errorf("the model is shown %s", s)
	}
}

// Another model is chosen for one conversation: the next request goes to it, the
// others stay with that of the settings, and it survives a stop.
func modelOfAConversation(t *testing.T, l *lab) {
	p := l.person(t, "chooser", obeys)
	l.mind("second", obeys)
	asked := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.asked["second"]) }
	id, other := p.begin("Hello."), p.begin("Hello.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	p.follow(other, 0, agentIs("awaiting_user_input"))
	if _, err := p.client.SetOverrides(t.Context(), id, api.SetOverrides{LLMModel: api.Some("openai/second")}); err != nil {
		t.Fatal(err)
	}
	p.ask(id, "And now?", "awaiting_user_input")
	p.ask(other, "And now?", "awaiting_user_input")
	if n, m := len(p.requests()), asked(); n != 3 || m != 1 {
		t.Errorf("the models were asked %d and %d times", n, m)
	}
	if _, err := p.client.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.ask(id, "And now?", "awaiting_user_input")
	if m := asked(); m != 2 {
		t.Errorf("after a stop the model was asked %d times", m)
	}
	p.set(`"llm_base_url":"","llm_api_key":"sk-of-openai"`)
	for model, says := range map[string]string{"anthropic/claude-sonnet-4-20250514": "needs an API key of anthropic", "nothing": "nothing"} {
		_, err := p.client.SetOverrides(t.Context(), id, api.SetOverrides{LLMModel: api.Some(model)})
		if statusOf(err) != 400 || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// Approvals are chosen for one conversation: it asks, and another one does not. A wrong value is a 422 that names the field.
func approvalOfAConversation(t *testing.T, l *lab) {
	p := l.person(t, "asker", obeys)
	p.set(`"confirmation_mode":false`)
	id := p.create("")
	t.Cleanup(func() { p.drop(id) })
	for _, wrong := range []api.Opt[string]{api.Some("sometimes"), api.Some("")} {
		if _, err := p.client.SetOverrides(t.Context(), id, api.SetOverrides{Approval: wrong}); statusOf(err) != 422 || !strings.Contains(err.Error(), "approval") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	for _, c := range []struct {
		mode  api.Opt[string]
		state string
	}{{api.Some("always"), "awaiting_user_confirmation"}, {api.Some("risky"), "awaiting_user_input"}, {api.Some("never"), "awaiting_user_input"}, {api.Opt[string]{Set: true, Null: true}, "awaiting_user_input"}} {
		got, err := p.client.SetOverrides(t.Context(), id, api.SetOverrides{Approval: c.mode})
		if err != nil || (got.Approval == nil) != c.mode.Null || got.Approval != nil && *got.Approval != c.mode.Value {
			t.Fatalf("%v: %+v, %v", c.mode, got, err)
		}
		p.ask(id, "$ echo looking", c.state)
		if c.state == "awaiting_user_confirmation" {
			if err := p.client.Decide(t.Context(), id, api.Decision{Decision: "accept"}); err != nil {
				t.Fatal(err)
			}
			p.follow(id, p.last(id)-1, agentIs("awaiting_user_input"))
		}
	}
	if _, err := l.person(t, "stranger", obeys).client.SetOverrides(t.Context(), id, api.SetOverrides{Approval: api.Some("never")}); statusOf(err) != 404 {
		t.Errorf("another user: %v", err)
	}
}

// The budget of one conversation is used up; raised, it goes on by itself.
func budgetOfAConversation(t *testing.T, l *lab) {
	p := l.person(t, "spender", thinker(1000))
	id := p.create("")
	t.Cleanup(func() { p.drop(id) })
	budget := func(amount float64) {
		t.Helper()
		if _, err := p.client.SetOverrides(t.Context(), id, api.SetOverrides{MaxBudgetPerTask: api.Some(amount)}); err != nil {
			t.Fatal(err)
		}
	}
	budget(0.25)
	if err := p.client.Say(t.Context(), id, "Think.", ""); err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, failedWith(api.CodeBudget))
	p.spent(id, 2)
	at := p.last(id)
	budget(0.55)
	p.follow(id, at, failedWith(api.CodeBudget))
	p.spent(id, 5)
}

// The server is killed while a copy is being made, at one point after the other.
// The copy is there with all of its files or not at all, what is left of it goes, and the same
// request made again makes it.
func TestKilledWhileForking(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	args := withSandbox(t, "local")
	b, process, id := killable(t, args, "$ mkdir many; for i in $(seq 400); do echo $i > many/$i; done; echo all' 'made")
	dir := b.dir
	// folders are those of workspaces, and of such as are being made.
	folders := func(pattern string) map[string]bool {
		found, err := filepath.Glob(filepath.Join(dir, "boxes", pattern))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, f := range found {
			out[f] = true
		}
		return out
	}
	ids := []string{id}
	for round, pattern := range []string{"", ".scrap-*", ".scrap-*/*", ".scrap-*/ws/many", "[0-9a-f]*"} {
		key, before := fmt.Sprint("round ", round), folders(pattern)
		asked := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		go func() {
			_, err := b.client.Fork(ctx, id, key, api.ForkConversation{})
			asked <- err
		}()
		for grown := pattern == ""; !grown; {
			for f := range folders(pattern) {
				grown = grown || !before[f]
			}
			select {
			case err := <-asked: // it was done before we saw it
				grown = true
				asked <- err
			default:
			}
		}
		kill(process)
		<-asked
		cancel()
		t.Logf("round %d: killed with %d folders unfinished", round, len(folders(".scrap-*")))
		b, process = spawn(t, dir, args...)
		again, err := b.client.Fork(t.Context(), id, key, api.ForkConversation{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		ids = append(ids, again.ConversationID)
		if made, err := os.ReadDir(filepath.Join(dir, "boxes", again.ConversationID, "ws", "many")); err != nil || len(made) != 400 {
			t.Errorf("round %d: the copy has %d files; %v", round, len(made), err)
		}
		page, err := b.client.Conversations(t.Context(), nil)
		if err != nil || len(page.Results) != len(ids) {
			t.Errorf("round %d: %d conversations, want %d; %v", round, len(page.Results), len(ids), err)
		}
	}
	b.until("what was left goes", func() bool { return len(folders("[0-9a-f]*")) == len(ids) })
	if err := b.client.Say(t.Context(), ids[len(ids)-1], "$ ls many | wc -l", ""); err != nil {
		t.Fatal(err)
	}
	b.said(ids[len(ids)-1], 0, `"content":"400`)
	b.remove(ids...)
}
