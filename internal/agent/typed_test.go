package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

func typeIt(command string) func(session.State) ([]session.Payload, error) {
	return func(s session.State) ([]session.Payload, error) { return s.Type(command) }
}

func ranAll(s session.State) bool { return len(s.Typed) == 0 }

// A command that a person types is run and recorded without the model, which sees it
// when it next works.
func TestTypedCommand(t *testing.T) {
	t.Parallel()
	r := chat(t, llmtest.Reply{Text: "ok"}, llmtest.Reply{Text: "ok again"})
	shell := newHand("execute_bash")
	shell.run = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "a b c", Details: json.RawMessage(`{"exit_code":0}`)}, nil
	}
	r.more = func(c *agent.Config) { c.Shell = shell }
	r.start()
	id := r.create("hello")
	r.until(id, "the end", answered)
	r.update(id, typeIt("ls"))
	st := r.until(id, "the result", ranAll)
	if !answered(st) || len(r.asked()) != 1 || len(shell.calls()) != 1 || string(shell.calls()[0].Args) != `{"command":"ls"}` || shell.calls()[0].Again {
		t.Errorf("agent %s, %d model calls, made %+v", st.Agent, len(r.asked()), shell.calls())
	}
	if got := all[session.CommandEnded](r.rig, id); len(got) != 1 || got[0].Command != "ls" || got[0].Output != "a b c" || got[0].Outcome != session.Succeeded || string(got[0].Details) != `{"exit_code":0}` {
		t.Errorf("%+v", got)
	}
	r.say(id, "what did I do?")
	r.until(id, "the end", func(s session.State) bool { return answered(s) && s.LastSaid < s.Seen })
	if got := texts(r.last()); !strings.Contains(got, "$ ls\na b c") {
		t.Error(got)
	}
}

// What a person types while a command runs reaches that command: the names of keys, the
// byte that a terminal sends for Ctrl-C, and nothing, which waits.
func TestTypedKeys(t *testing.T) {
	t.Parallel()
	r := chat(t, done("ok"))
	shell := newHand("execute_bash")
	running := false
	shell.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		args := string(c.Args)
		switch {
		case strings.Contains(args, `"is_input":"true"`):
			running = false
			return tool.Result{Text: "ended", Details: json.RawMessage(`{"exit_code":130}`)}, nil
		case strings.Contains(args, "sleep"), running && args == `{"command":""}`:
			running = true
			return tool.Result{Text: "so far\n", Details: json.RawMessage(`{"exit_code":-1}`)}, nil
		case running:
			return tool.Result{Failed: true, Text: sandbox.StillRuns, Details: json.RawMessage(`{"exit_code":-1}`)}, nil
		}
		return tool.Result{Text: "ran " + args, Details: json.RawMessage(`{"exit_code":0}`)}, nil
	}
	r.more = func(c *agent.Config) { c.Shell = shell }
	r.start()
	id := r.create("")
	for _, c := range []struct{ typed, says string }{
		{"sleep 9", "so far\n[The command is still running. Type C-c"},
		{"ls", "The previous command is still running, so this one was not run. Type C-c"},
		{"", "so far\n[The command is still running."},
		{" c-c ", "ended"},
		{"sleep 9", "so far"},
		{"\x03", "ended"},
		{"sleep 9", "so far"},
		{"\x03ls", `ran {"command":"ls"}`},
	} {
		r.update(id, typeIt(c.typed))
		r.until(id, "the result", ranAll)
		got := all[session.CommandEnded](r.rig, id)
		if last := got[len(got)-1]; !strings.HasPrefix(last.Output, c.says) || last.Command != c.typed {
			t.Errorf("%q: %+v", c.typed, last)
		}
	}
}

// A stop ends the command, with a result that has what it wrote. A message or a command opens the session again.
func TestStopEndsATypedCommand(t *testing.T) {
	t.Parallel()
	r := chat(t, done("ok"))
	shell := newHand("execute_bash")
	began := make(chan struct{}, 1)
	shell.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if strings.Contains(string(c.Args), "sleep") {
			c.Live([]byte("half\n"))
			began <- struct{}{}
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}
		return tool.Result{Text: "there"}, nil
	}
	r.more = func(c *agent.Config) { c.Shell = shell }
	r.sessions.Written(func(_ session.ID, call string) string {
		if !session.IsTyped(call) {
			return ""
		}
		return r.deltas.soFar()
	})
	r.start()
	id := r.create("")
	r.update(id, typeIt("sleep 99"))
	<-began
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	if got := all[session.CommandEnded](r.rig, id); len(got) != 1 || got[0].Outcome != session.Cancelled || got[0].Output != "half\n[Interrupted by stop; the output ends here.]" {
		t.Errorf("%+v", got)
	}
	r.update(id, typeIt("ls"))
	r.until(id, "the result", ranAll)
	if got := all[session.CommandEnded](r.rig, id); len(got) != 2 || got[1].Output != "there" {
		t.Errorf("%+v", got)
	}
}

// A server that ends during a command leaves it open; the next one asks for its result
// and does not run it a second time.
func TestTypedCommandSurvivesARestart(t *testing.T) {
	t.Parallel()
	r := chat(t, done("ok"))
	shell := newHand("execute_bash")
	began := make(chan struct{}, 2)
	shell.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Again {
			return tool.Result{Text: "fetched"}, nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	r.more = func(c *agent.Config) { c.Shell = shell }
	stop := r.start()
	id := r.create("")
	r.update(id, typeIt("make"))
	<-began
	stop()
	r.start()
	r.until(id, "the result", ranAll)
	got, made := all[session.CommandEnded](r.rig, id), shell.calls()
	if len(got) != 1 || got[0].Output != "fetched" || len(made) != 2 || made[0].ID != made[1].ID {
		t.Errorf("%+v %+v", got, made)
	}
}
