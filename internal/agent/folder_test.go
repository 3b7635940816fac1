package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// A call that left the workspace changes what the next one means: it is rated there, and what was allowed does not cover
// it. That holds within one answer, after a restart and after a restore of the conversation.
func TestShellOutsideTheWorkspace(t *testing.T) {
	sh := func(commands ...string) llmtest.Reply {
		var all llmtest.Reply
		for _, c := range commands {
			args, _ := json.Marshal(map[string]string{"command": c})
			all.Calls = append(all.Calls, called("call-"+c, "execute_bash", string(args)))
		}
		return all
	}
	r := chat(t, sh("make", "touch a"), sh("cd /tmp/x", "make"), done("ok"), sh("make all"), done("ok"), sh("touch a"), done("ok"), sh("cd /workspace", "make ", "touch a"), done("ok"))
	bash := newHand("execute_bash")
	bash.spec.Schema = nil
	folder := ""
	bash.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		var a struct{ Command string }
		_ = json.Unmarshal(c.Args, &a)
		if to, ok := strings.CutPrefix(a.Command, "cd "); ok {
			folder = strings.TrimPrefix(to, "/workspace")
		}
		details, _ := json.Marshal(map[string]string{"folder": folder})
		return tool.Result{Text: "done", Details: details}, nil
	}
	r.tools(bash)
	r.set(func(p *agent.Profile) { p.Confirm, p.Analyzer = true, "rules" })
	stop := r.start()
	id := r.create("go")
	asked := func(command, pattern, place string) {
		t.Helper()
		if open := r.awaiting(id); open.ID != "call-"+command {
			t.Fatalf("asked about %+v", open)
		}
		questions := all[session.ApprovalAsked](r.rig, id)
		if q := questions[len(questions)-1]; q.Pattern != pattern || !strings.Contains(q.Reason, place) {
			t.Fatalf("asked %+v", q)
		}
	}
	asked("touch a", "execute_bash:touch a", "")
	r.decide(id, session.ApprovalGiven{Approved: true, Always: "execute_bash:touch a"})
	asked("make", "", "in /tmp/x, outside the workspace")
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)

	stop()
	r.start()
	r.say(id, "go on")
	asked("make all", "", "in /tmp/x, outside the workspace")
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", func(s session.State) bool { return finished(s) && s.Turns == 2 })
	r.update(id, func(s session.State) ([]session.Payload, error) {
		return s.Restore(session.Restored{Action: session.RestorePoint, Point: 2, Conversation: true})
	})
	r.say(id, "go on") // the shell stands where it stood
	asked("touch a", "", "in /tmp/x, outside the workspace")
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", func(s session.State) bool { return finished(s) && s.Turns == 3 })
	r.say(id, "go back")
	r.until(id, "the end", func(s session.State) bool { return finished(s) && s.Turns == 4 })
	if n := len(bash.calls()); n != 9 {
		t.Errorf("%d calls were made", n)
	}
}
