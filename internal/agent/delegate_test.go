package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/bash"
	"deckhand/internal/tool/delegate"
	"deckhand/internal/tool/tooltest"

	"deckhand/internal/sandbox"
)

// delegates is an answer that hands a task on.
func delegates(task, more string) llmtest.Reply {
	return calls(called("d", delegate.Name, `{"agent":"CodeActAgent","inputs":{"task":"`+task+`"}`+more+`}`))
}

// family is a rig whose agents may delegate. The child's first message is "task".
func family(t *testing.T, parent, child func(n int, a llmtest.Asked) llmtest.Reply, tools ...tool.Tool) *wired {
	t.Helper()
	var parents, children atomic.Int32
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if strings.HasPrefix(a.Messages[0].Text, "task") {
			return child(int(children.Add(1)), a)
		}
		return parent(int(parents.Add(1)), a)
	})
	r.tools(append(tools, delegate.Tool{})...)
	return r
}

// once is a script of a part.
func once(replies ...llmtest.Reply) func(int, llmtest.Asked) llmtest.Reply {
	return func(n int, _ llmtest.Asked) llmtest.Reply { return replies[min(n, len(replies))-1] }
}

// childOf is the conversation that a parent made, once it is there.
func (r *wired) childOf(parent session.ID) session.ID {
	r.t.Helper()
	var child session.ID
	r.until(parent, "a child", func(session.State) bool {
		rows, err := r.log.Rows(r.t.Context(), session.Query{Owner: "ada", Trigger: "delegate", Limit: 10})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, row := range rows {
			if st, err := r.sessions.Load(r.t.Context(), row.ID); err == nil && st.Created.Parent == parent {
				child = row.ID
			}
		}
		return child != ""
	})
	return child
}

// A child has its own log, works with what it was granted, and its last words
// are the result.
func TestDelegate(t *testing.T) {
	r := family(t, once(delegates("task: count the files", ""), done("ok")),
		once(llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}, Usage: llm.Usage{Input: 1000, Output: 10}}, llmtest.Reply{Text: "There are 12.", Usage: llm.Usage{Input: 1000, Output: 10}}),
		newHand("say"))
	budget := session.Money(5e9)
	r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &budget })
	r.start()
	id := r.create("go")
	st := r.until(id, "the end", finished)
	child := r.childOf(id)
	got := all[session.ToolReturned](r.rig, id)[0]
	if got.Outcome != session.Succeeded || got.Output != "There are 12." || !strings.Contains(string(got.Details), string(child)) {
		t.Errorf("%+v", got)
	}
	of, err := r.sessions.Load(t.Context(), child)
	if err != nil {
		t.Fatal(err)
	}
	if of.Created.Depth != 1 || of.Owner != "ada" || of.Totals.Cost != 2*(1000*3000+10*15000) || !of.Limited || of.Limit != of.Totals.Cost {
		t.Errorf("the child is %+v", of)
	}
	granted, settled := all[session.Granted](r.rig, id), all[session.Settled](r.rig, id)
	if len(granted) != 1 || len(settled) != 1 || settled[0].Cost != of.Totals.Cost || len(st.Grants) != 0 {
		t.Fatalf("granted %+v, settled %+v", granted, settled)
	}
	if left := budget - all[session.ModelAnswered](r.rig, id)[0].Cost; granted[0].Amount != left || of.Created.Grant != left {
		t.Errorf("granted %v of %v", granted[0].Amount, left)
	}
	var own session.Money
	for _, a := range all[session.ModelAnswered](r.rig, id) {
		own += a.Cost
	}
	if st.Totals.Cost != own+of.Totals.Cost {
		t.Errorf("the parent spent %v", st.Totals.Cost)
	}
}

// A child may not spend more than it was given, and its failure is a result.
func TestDelegateFails(t *testing.T) {
	for name, test := range map[string]struct {
		more  string
		child llmtest.Reply
		want  string
	}{
		"no money": {`,"max_budget":0.01`, llmtest.Reply{Text: "yes"}, "The budget of $0.01"},
		"no key":   {"", llmtest.Reply{Status: 401, Message: "no such key"}, "no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := family(t, once(delegates("task", test.more), done("ok")), once(test.child))
			budget := session.Money(5e9)
			r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &budget })
			r.start()
			id := r.create("go")
			st := r.until(id, "the end", finished)
			got := all[session.ToolReturned](r.rig, id)[0]
			if got.Outcome != session.FailedRun || !strings.Contains(got.Output, test.want) || len(st.Grants) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDelegateHasALimitedDepth(t *testing.T) {
	r := family(t, once(delegates("task", ""), done("ok")), once(delegates("task", ""), delegates("task", ""), llmtest.Reply{Text: "by hand"}))
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	rows, err := r.log.Rows(t.Context(), session.Query{Owner: "ada", Limit: 10})
	if err != nil || len(rows) != 1+agent.MaxDepth {
		t.Errorf("%d conversations, %v", len(rows), err)
	}
	for _, row := range rows {
		for _, got := range all[session.ToolReturned](r.rig, row.ID) {
			if got.Outcome == session.FailedRun && got.Output != "Delegation is limited to two levels. Do the task in this conversation." {
				t.Errorf("refused with %q", got.Output)
			}
		}
	}
}

// A process that dies after the reservation and before the child is stored: the next one creates the child with the same
// reservation.
func TestRestartBeforeTheChildIsStored(t *testing.T) {
	r := family(t, once(delegates("task", ""), done("ok")), once(llmtest.Reply{Text: "12"}))
	budget := session.Money(5e9)
	r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &budget })
	reserved := make(chan error, 1)
	r.more = func(c *agent.Config) {
		c.Delegate = func(ctx context.Context, d conversation.Delegate) error {
			_, err := d.Reserve(ctx)
			reserved <- err
			<-ctx.Done()
			return ctx.Err()
		}
	}
	stop := r.start()
	id := r.create("go")
	if err := <-reserved; err != nil {
		t.Fatal(err)
	}
	stop()
	r.more = nil
	r.start()
	st := r.until(id, "the end", finished)
	of, err := r.sessions.Load(t.Context(), r.childOf(id))
	granted, settled := all[session.Granted](r.rig, id), all[session.Settled](r.rig, id)
	if err != nil || len(granted) != 1 || len(settled) != 1 || of.Created.Grant != granted[0].Amount || len(st.Grants) != 0 {
		t.Errorf("%+v was granted, %+v settled, the child has %v: %v", granted, settled, of.Created.Grant, err)
	}
}

// A conversation that has the child's ID but another parent is not the child: nothing of it is read or changed.
func TestChildsIDIsTaken(t *testing.T) {
	r := family(t, once(delegates("task", ""), done("ok")), once(llmtest.Reply{Text: "12"}))
	var taken session.ID
	r.more = func(c *agent.Config) {
		create := c.Delegate
		c.Delegate = func(ctx context.Context, d conversation.Delegate) error {
			taken = d.Child
			if _, err := r.sessions.Create(ctx, taken, session.Created{Owner: "eve"}, nil); err != nil {
				t.Error(err)
			}
			return create(ctx, d)
		}
	}
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	got := all[session.ToolReturned](r.rig, id)[0]
	if got.Outcome != session.FailedRun || !strings.Contains(got.Output, "already in use") || count[session.Stopped](r.events(taken)) != 0 {
		t.Errorf("%+v", got)
	}
}

// A restart while the child works: nothing is done or paid twice.
func TestRestartDuringADelegation(t *testing.T) {
	say := newHand("say")
	began := make(chan struct{}, 1)
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Again {
			return tool.Result{Text: "found"}, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	r := family(t, once(delegates("task", ""), done("ok")), once(calls(called("a", "say", `{"text":"x"}`)), llmtest.Reply{Text: "12"}), say)
	budget := session.Money(5e9)
	r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &budget })
	stop := r.start()
	id := r.create("go")
	<-began
	stop()
	r.start()
	st := r.until(id, "the end", finished)
	child := r.childOf(id)
	if n := len(say.calls()); n != 2 || !say.calls()[1].Again {
		t.Errorf("made %+v", say.calls())
	}
	events := r.events(id)
	if count[session.Granted](events) != 1 || count[session.Settled](events) != 1 || count[session.UserSaid](r.events(child)) != 1 || len(st.Grants) != 0 {
		t.Errorf("%d grants, %d settled", count[session.Granted](events), count[session.Settled](events))
	}
}

// Who stops or pauses the parent stops the child, and what it spent is counted.
func TestInterruptedDelegation(t *testing.T) {
	for name, rule := range map[string]func(session.State) ([]session.Payload, error){
		"stop":  func(s session.State) ([]session.Payload, error) { return s.Stop("") },
		"pause": session.State.PauseNow,
	} {
		t.Run(name, func(t *testing.T) {
			say := newHand("say")
			began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
			say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
				began <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return tool.Result{}, ctx.Err()
			}
			r := family(t, once(delegates("task", ""), done("ok")), once(calls(called("a", "say", `{"text":"x"}`))), say)
			budget := session.Money(5e9)
			r.set(func(p *agent.Profile) { p.Info, p.Budget = priced, &budget })
			r.start()
			id := r.create("go")
			<-began
			child := r.childOf(id)
			r.update(id, rule)
			<-ended
			r.until(child, "the end of the child", func(s session.State) bool { return s.Stopped })
			st := r.until(id, "the settlement", func(s session.State) bool { return len(s.Grants) == 0 })
			of, err := r.sessions.Load(t.Context(), child)
			if err != nil || of.Totals.Cost == 0 || all[session.Settled](r.rig, id)[0].Cost != of.Totals.Cost || st.Totals.Cost <= of.Totals.Cost {
				t.Errorf("%v of the child's %v are counted", st.Totals.Cost, of.Totals.Cost)
			}
		})
	}
}

// A child whose parent was stopped while no server ran does not work on alone.
func TestOrphan(t *testing.T) {
	say := newHand("say")
	began := make(chan struct{}, 1)
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	r := family(t, once(delegates("task", ""), done("ok")), once(calls(called("a", "say", `{"text":"x"}`))), say)
	stop := r.start()
	id := r.create("go")
	<-began
	child := r.childOf(id)
	stop()
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("") })
	r.start()
	st := r.until(child, "the end of the child", func(s session.State) bool { return s.Status() == session.Halted })
	if !strings.Contains(st.Reason, "is stopped") || len(say.calls()) != 1 {
		t.Errorf("%s after %d calls", st.Reason, len(say.calls()))
	}
}

// A child asks the person like anybody, and its parent waits.
func TestApprovalInAChild(t *testing.T) {
	say := newHand("say")
	r := family(t, once(delegates("task", ""), done("ok")), once(calls(called("a", "say", `{"text":"x"}`)), llmtest.Reply{Text: "12"}), say)
	whose := r.profile
	r.profile = func(ctx context.Context, st session.State) (agent.Profile, error) {
		p, err := whose(ctx, st)
		p.Confirm = st.Created.Parent != ""
		return p, err
	}
	r.start()
	id := r.create("go")
	child := r.childOf(id)
	r.awaiting(child)
	if st, err := r.sessions.Load(t.Context(), id); err != nil || !st.InTurn || len(st.Open) != 1 {
		t.Errorf("the parent does not wait: %+v, %v", st, err)
	}
	r.decide(child, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
	if len(say.calls()) != 1 {
		t.Errorf("made %+v", say.calls())
	}
}

// bench is a workspace with the real runner in it, which remembers who used it.
type bench struct {
	*tooltest.Bench
	mu   sync.Mutex
	used []session.ID
}

func (b *bench) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = append(b.used, id)
	box, err := b.Box(ctx)
	return box, func() {}, err
}

// The child works in its parent's sandbox with a shell of its own; when its
// parent is paused, its command ends, and the parent's shell is left alone.
func TestChildsShell(t *testing.T) {
	b := &bench{Bench: tooltest.New(t)}
	b.Put("sub/x", "")
	sh := func(command string) llmtest.Reply {
		return calls(called("a", "execute_bash", fmt.Sprintf(`{"command":%q}`, command)))
	}
	r := family(t, once(sh("cd "+b.Root+"/sub && export WHO=parent"), delegates("task", ""), sh("until test -e "+b.At("interrupted")+"; do sleep 0.05; done; echo $WHO in $PWD"), done("ok")),
		once(sh("echo child $WHO in $PWD; cd /"), sh("bash -c 'trap \"touch "+b.At("interrupted")+"; exit\" INT; echo it began; while :; do sleep 0.05; done'")), bash.Tool{})
	r.workspaces = b
	r.start()
	id := r.create("go")
	child := r.childOf(id)
	for !strings.Contains(r.deltas.soFar(), "it began") {
		<-r.deltas.news
	}
	if got := all[session.ToolReturned](r.rig, child)[0].Output; strings.Contains(got, "parent") || strings.Contains(got, "/sub") {
		t.Errorf("the child's shell is its parent's: %s", got)
	}
	r.update(id, session.State.PauseNow)
	r.until(child, "the end of the child", func(s session.State) bool { return s.Stopped })
	r.update(id, session.State.Resume)
	r.until(id, "the end", finished)
	results := all[session.ToolReturned](r.rig, id)
	if got := results[2].Output; !strings.Contains(got, "parent in "+b.Root+"/sub") {
		t.Errorf("the parent's shell says %s", got)
	}
	for _, used := range b.used {
		if used != id {
			t.Errorf("%s used a workspace of its own", used)
		}
	}
}
