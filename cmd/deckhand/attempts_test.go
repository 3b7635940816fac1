package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
)

// attempted waits until the newest set of attempts satisfies a condition, and returns its attempts.
func (b *box) attempted(c *client.Client, id, what string, ok func([]api.Attempt) bool) []api.Attempt {
	b.t.Helper()
	var found []api.Attempt
	b.until(what, func() bool {
		got, err := c.Attempts(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if found = nil; len(got.Sets) > 0 {
			found = got.Sets[0].Attempts
		}
		return ok(found)
	})
	return found
}

// tested reports whether there are the given number of attempts, all with a test result.
func tested(n int) func([]api.Attempt) bool {
	return func(list []api.Attempt) bool {
		done := func(a api.Attempt) bool {
			return a.Test != nil && (a.Test.State == "passed" || a.Test.State == "failed")
		}
		return len(list) == n && !slices.ContainsFunc(list, func(a api.Attempt) bool { return !done(a) })
	}
}

// twoWays is a request for two attempts, of which the second passes the tests. The test output has the number of runs.
func twoWays() api.StartAttempts {
	return api.StartAttempts{Task: "$ printf 'a\\nTWO\\nc\\nd\\n' > f; echo new > more",
		Attempts:    []api.AttemptSpec{{}, {Model: api.Some("openai/second"), ReasoningEffort: api.Some("low"), Instructions: api.Some("touch pass")}},
		TestCommand: api.Some(`echo >> ~/runs; echo "runs: $(wc -l < ~/runs)"; test -e pass || { echo broken; exit 3; }`)}
}

const attemptsRepository = "$ git init -q && printf 'a\\nb\\nc\\n' > f && git add f && git -c user.name=n -c user.email=e@example.org commit -qm one"

// A task is tried in two ways; the results are in a table; one is kept.
func TestAttempts(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys, `"max_budget_per_task":5`)
	l.mind("second", obeys)
	t.Cleanup(p.dropAll)
	id := p.begin(attemptsRepository)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	p.refusesAttempts(l, id)

	made, err := p.client.StartAttempts(t.Context(), id, "retry-key-of-attempts", twoWays())
	if err != nil || len(made.Sets) != 1 || len(made.Sets[0].Attempts) != 2 || made.AttemptOf != nil {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := p.client.StartAttempts(t.Context(), id, "retry-key-of-attempts", twoWays())
	if err != nil || len(again.Sets) != 1 || again.Sets[0].ID != made.Sets[0].ID {
		t.Fatalf("sent again: %+v, %v", again, err)
	}
	list := p.attempted(p.client, id, "test results", tested(2))
	first, other := list[0], list[1]
	if first.Model != "openai/forker" || first.State != "started" || first.Working || first.SecondsWorked <= 0 || math.Abs(first.AccumulatedCost-0.2) > 1e-9 || first.Instructions != nil {
		t.Errorf("%+v", first)
	}
	if d := first.Diff; d == nil || *d != (api.DiffSize{Files: 2, Added: 3, Removed: 1}) {
		t.Errorf("%+v", d)
	}
	if r := first.Test; r.State != "failed" || r.ExitCode == nil || *r.ExitCode != 3 || r.Output != "runs: 1\nbroken" || r.At == nil {
		t.Errorf("%+v", r)
	}
	if other.Model != "openai/second" || *other.ReasoningEffort != "low" || *other.Instructions != "touch pass" || other.AccumulatedCost != 0 || *other.Diff != (api.DiffSize{Files: 3, Added: 3, Removed: 1}) {
		t.Errorf("%+v", other)
	}
	if r := other.Test; r.State != "passed" || *r.ExitCode != 0 || r.Output != "runs: 1" {
		t.Errorf("%+v", r)
	}
	// Another default model does not change which model the attempt ran with.
	for _, model := range []string{"openai/second", "openai/forker"} {
		if _, err := p.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some(model)}); err != nil {
			t.Fatal(err)
		}
		if now, err := p.client.Attempts(t.Context(), id); err != nil || now.Sets[0].Attempts[0].Model != "openai/forker" {
			t.Errorf("with the default %s: %+v, %v", model, now, err)
		}
	}
	of, err := p.client.Attempts(t.Context(), other.ConversationID)
	if err != nil || of.AttemptOf == nil || *of.AttemptOf != id || len(of.Sets) != 0 {
		t.Errorf("%+v, %v", of, err)
	}
	if s := describe(p.events(first.ConversationID)); !strings.Contains(s, "git init") {
		t.Errorf("the attempt does not know the history: %s", s)
	}

	// The tests run again after another turn, and on request.
	p.ask(first.ConversationID, "$ touch pass", "awaiting_user_input")
	list = p.attempted(p.client, id, "a second run", func(list []api.Attempt) bool { return tested(2)(list) && list[0].Test.State == "passed" })
	if r := list[0]; r.Test.Output != "runs: 2" || r.Diff == nil || *r.Diff != (api.DiffSize{Files: 3, Added: 3, Removed: 1}) {
		t.Errorf("%+v %+v", r.Test, r.Diff)
	}
	if _, err := p.client.TestAttempt(t.Context(), id, first.ConversationID); err != nil {
		t.Fatal(err)
	}
	p.attempted(p.client, id, "a third run", func(list []api.Attempt) bool { return tested(2)(list) && list[0].Test.Output == "runs: 3" })

	p.keepsOne(l, id, first, other)
}

// Changes outside a repository in a subfolder count too.
func TestAttemptsOutsideARepository(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys, `"max_budget_per_task":5`)
	t.Cleanup(p.dropAll)
	id := p.begin("$ git init -q sub && echo one > sub/f && echo one > outside")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	in := api.StartAttempts{Task: "$ printf 'two\\nthree\\n' > outside", Attempts: []api.AttemptSpec{{}, {}}}
	if _, err := p.client.StartAttempts(t.Context(), id, "", in); err != nil {
		t.Fatal(err)
	}
	list := p.attempted(p.client, id, "the changes", func(list []api.Attempt) bool { return len(list) == 2 && list[0].Diff != nil && list[1].Diff != nil })
	for _, a := range list {
		if *a.Diff != (api.DiffSize{Files: 1, Added: 2, Removed: 1}) {
			t.Errorf("%+v", *a.Diff)
		}
	}
}

// Two people who keep different attempts at the same time do not lose both.
func TestAttemptsKeptAtOnce(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys)
	t.Cleanup(p.dropAll)
	for range 5 {
		id := p.begin(attemptsRepository)
		p.follow(id, 0, agentIs("awaiting_user_input"))
		started, err := p.client.StartAttempts(t.Context(), id, "", api.StartAttempts{Task: "$ true", Attempts: make([]api.AttemptSpec, 2)})
		if err != nil {
			t.Fatal(err)
		}
		both := started.Sets[0].Attempts
		done := make(chan error, len(both))
		for _, a := range both {
			go func() { done <- second(p.client.KeepAttempt(t.Context(), id, a.ConversationID)) }()
		}
		refused := 0
		for range both {
			switch err := <-done; {
			case statusOf(err) == 404:
				refused++
			case err != nil:
				t.Error(err)
			}
		}
		left := 0
		for _, a := range both {
			if _, err := p.client.Conversation(t.Context(), a.ConversationID); err == nil {
				left++
			}
		}
		if refused != 1 || left != 1 {
			t.Fatalf("%d requests were refused and %d attempts are left, wanted 1 of each", refused, left)
		}
	}
}

// keepsOne keeps the second of two attempts and checks that the first is deleted and the second is an ordinary conversation.
func (p *person) keepsOne(l *lab, id string, first, other api.Attempt) {
	t := p.t
	stranger := l.person(t, "spender", obeys)
	for what, err := range map[string]error{
		"list":  second(stranger.client.Attempts(t.Context(), id)),
		"start": second(stranger.client.StartAttempts(t.Context(), id, "", twoWays())),
		"test":  second(stranger.client.TestAttempt(t.Context(), id, first.ConversationID)),
		"keep":  second(stranger.client.KeepAttempt(t.Context(), id, first.ConversationID)),
	} {
		if statusOf(err) != 404 {
			t.Errorf("%s by another user: %v", what, err)
		}
	}
	if _, err := p.client.KeepAttempt(t.Context(), id, id); statusOf(err) != 404 {
		t.Errorf("no such attempt: %v", err)
	}
	kept, err := p.client.KeepAttempt(t.Context(), id, other.ConversationID)
	if err != nil || kept.ConversationID != other.ConversationID || len(kept.Deleted) != 1 || kept.Deleted[0] != first.ConversationID {
		t.Fatalf("%+v, %v", kept, err)
	}
	if _, err := p.client.KeepAttempt(t.Context(), id, other.ConversationID); err != nil {
		t.Errorf("kept again: %v", err)
	}
	if _, err := p.client.Conversation(t.Context(), first.ConversationID); !client.IsNotFound(err) {
		t.Errorf("the other one is still there: %v", err)
	}
	if _, err := p.client.TestAttempt(t.Context(), id, other.ConversationID); statusOf(err) != 409 {
		t.Errorf("tests of a decided attempt: %v", err)
	}
	got, err := p.client.Attempts(t.Context(), id)
	if err != nil || len(got.Sets) != 1 || len(got.Sets[0].Attempts) != 1 || got.Sets[0].Attempts[0].State != "kept" || got.Sets[0].Attempts[0].Test.State != "passed" {
		t.Errorf("%+v, %v", got, err)
	}
	if out := observed(t, p.ask(other.ConversationID, "$ cat f; ls", "awaiting_user_input"), "run"); !strings.Contains(out, "TWO") || !strings.Contains(out, "pass") {
		t.Errorf("the kept one has %s", out)
	}
	if out := observed(t, p.ask(id, "$ cat f; ls", "awaiting_user_input"), "run"); strings.Contains(out, "TWO") {
		t.Errorf("the original has %s", out)
	}
	if err := p.client.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if of, err := p.client.Attempts(t.Context(), other.ConversationID); err != nil || of.AttemptOf != nil {
		t.Errorf("without the original: %+v, %v", of, err)
	}
}

// refusesAttempts sends invalid requests and checks that nothing is created.
func (p *person) refusesAttempts(l *lab, id string) {
	t := p.t
	t.Helper()
	change := func(f func(*api.StartAttempts)) api.StartAttempts {
		in := twoWays()
		f(&in)
		return in
	}
	for what, c := range map[string]struct {
		in     api.StartAttempts
		status int
		part   string
	}{
		"no task":       {change(func(in *api.StartAttempts) { in.Task = "" }), 422, "task"},
		"blank task":    {change(func(in *api.StartAttempts) { in.Task = " \n" }), 422, "task"},
		"one attempt":   {change(func(in *api.StartAttempts) { in.Attempts = in.Attempts[:1] }), 422, "attempts"},
		"nine attempts": {change(func(in *api.StartAttempts) { in.Attempts = make([]api.AttemptSpec, 9) }), 422, "attempts"},
		"no such event": {change(func(in *api.StartAttempts) { in.EventID = api.Some(int64(100_000)) }), 422, "event_id"},
		"effort":        {change(func(in *api.StartAttempts) { in.Attempts[1].ReasoningEffort = api.Some("huge") }), 422, "reasoning_effort"},
		"model":         {change(func(in *api.StartAttempts) { in.Attempts[1].Model = api.Some("nowhere/none") }), 400, "attempts[1].model"},
		"long test":     {change(func(in *api.StartAttempts) { in.TestCommand = api.Some(strings.Repeat("x", 10_001)) }), 422, "test_command"},
	} {
		_, err := p.client.StartAttempts(t.Context(), id, "", c.in)
		if statusOf(err) != c.status || !strings.Contains(fmt.Sprint(err), c.part) {
			t.Errorf("%s: %v, want %d with %q", what, err, c.status, c.part)
		}
	}
	if err := p.client.Say(t.Context(), id, "$ until [ -e go ]; do sleep 0.1; done; rm go", ""); err != nil {
		t.Fatal(err)
	}
	last := p.last(id)
	if _, err := p.client.StartAttempts(t.Context(), id, "", twoWays()); statusOf(err) != 409 || !strings.Contains(err.Error(), "agent is working") {
		t.Errorf("while the agent works: %v", err)
	}
	p.upload(id, map[string]string{"go": ""})
	p.follow(id, last, agentIs("awaiting_user_input"))
	if got, err := p.client.Attempts(t.Context(), id); err != nil || len(got.Sets) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if page, err := p.client.Conversations(t.Context(), nil); err != nil || len(page.Results) != 1 {
		t.Errorf("something was created: %+v, %v", page, err)
	}
}

// A server that is killed while it starts attempts, runs tests or deletes attempts continues after a restart: nothing is done twice.
func TestKilledDuringAttempts(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := withSandbox(t, "local")
	b, process := spawn(t, dir, args...)
	b.demo("scripted/demo")
	id := b.create("$ echo one > f; echo all' 'made")
	b.said(id, 0, "all made")
	kill := func() {
		t.Helper()
		_ = process.Process.Kill()
		_ = process.Wait()
		b, process = spawn(t, dir, args...)
	}
	in := api.StartAttempts{Task: "$ echo x >> counted; echo two > f", Attempts: make([]api.AttemptSpec, 5),
		TestCommand: api.Some(`echo >> ~/runs; until [ -e go ]; do sleep 0.1; done; echo "runs: $(wc -l < ~/runs), done: $(wc -l < counted)"`)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	asked := make(chan error, 1)
	go func(c *client.Client) { asked <- second(c.StartAttempts(ctx, id, "the-key-of-the-attempts", in)) }(b.client)
	b.attempted(b.client, id, "the first attempt", func(list []api.Attempt) bool { return len(list) == 5 && list[0].Status != "" })
	kill()
	<-asked

	running := func(list []api.Attempt) bool {
		return len(list) == 5 && !slices.ContainsFunc(list, func(a api.Attempt) bool { return a.Test.State != "running" })
	}
	b.attempted(b.client, id, "all tests running", running)
	made, err := b.client.StartAttempts(t.Context(), id, "the-key-of-the-attempts", in)
	if err != nil || len(made.Sets) != 1 {
		t.Fatalf("sent again: %+v, %v", made, err)
	}
	kill()
	list := b.attempted(b.client, id, "all tests still running", running)
	for _, a := range list {
		b.upload(a.ConversationID, map[string]string{"go": ""})
	}
	for _, a := range b.attempted(b.client, id, "test results", tested(5)) {
		if a.Test.State != "passed" || a.Test.Output != "runs: 1, done: 1" {
			t.Errorf("%+v", a.Test)
		}
	}

	go func(c *client.Client) { asked <- second(c.KeepAttempt(ctx, id, list[2].ConversationID)) }(b.client)
	b.attempted(b.client, id, "one kept", func(list []api.Attempt) bool {
		return slices.ContainsFunc(list, func(a api.Attempt) bool { return a.State == "kept" })
	})
	kill()
	<-asked
	b.until("the others deleted", func() bool {
		page, err := b.client.Conversations(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Results) == 2
	})
	b.remove(list[2].ConversationID)
	b.remove(id)
}

// People start attempts, compare them and keep one, in a real browser.
func TestAttemptsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	needsCopies(t)
	newTheatre(t, "tove").play(t, "attempts.mjs")
}
