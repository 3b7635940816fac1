package cli

import (
	"testing"
	"time"

	"deckhand/api"
)

func TestStates(t *testing.T) {
	t.Parallel()
	failed, question := "STATUS$ERROR", "question"
	for _, c := range []struct {
		in   api.Conversation
		want string
	}{
		{api.Conversation{Status: "STARTING", AgentState: "loading"}, "starting"}, {api.Conversation{Status: "RUNNING", AgentState: "running"}, "working"},
		{api.Conversation{Status: "RUNNING", AgentState: "awaiting_user_confirmation"}, "needs approval"}, {api.Conversation{Status: "RUNNING", AgentState: "finished"}, "done"},
		{api.Conversation{Status: "RUNNING", AgentState: "awaiting_user_input"}, "done"}, {api.Conversation{Status: "RUNNING", AgentState: "awaiting_user_input", Reason: &question}, "question"},
		{api.Conversation{Status: "STOPPED", AgentState: "stopped"}, "stopped"}, {api.Conversation{Status: "STOPPED", AgentState: "running"}, "interrupted"}, {api.Conversation{Status: "STOPPED", AgentState: "error", ErrorID: &failed}, "failed"},
	} {
		if got, _ := StateOf(c.in); got != c.want {
			t.Errorf("%+v: %s", c.in, got)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", time.Hour - 1: "59m", 47 * time.Hour: "47h", 49 * time.Hour: "2d"} {
		if got := Age(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}
