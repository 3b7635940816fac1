package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// These are tests of the legacy server's known defects, as in internal/httpapi,
// that need an agent at work.

func TestDefect12FailedStartInvisible(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.post("/api/settings", `{"llm_model":"acme/model-1","llm_api_key":"sk-something"}`)
	id := b.create("hello")
	seen := b.follow(id, 0, agentIs("error"))
	says(t, describe(seen), "acme/model-1")
	got, err := b.client.Conversation(t.Context(), id)
	if err != nil || got.Status != "STOPPED" || got.Reason == nil || !strings.Contains(*got.Reason, "acme/model-1") || got.RuntimeStatus == nil || !strings.HasPrefix(*got.RuntimeStatus, "STATUS$ERROR") {
		t.Errorf("%+v %v", got, err)
	}
	if _, list, _ := b.raw("GET", "/api/conversations", ""); !strings.Contains(list, `"status":"STOPPED"`) || strings.Contains(list, "STARTING") {
		t.Errorf("%s", list)
	}
}

func TestDefect17StatusErrorsNotStored(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	if err := b.client.Rename(t.Context(), id, "A new name"); err != nil {
		t.Fatal(err)
	}
	b.post("/api/conversations/"+id+"/stop", "")
	b.post("/api/settings", `{"llm_model":"acme/model-1","llm_api_key":"sk-something"}`)
	b.post("/api/conversations/"+id+"/start", `{}`)
	b.post("/api/conversations/"+id+"/message", `{"message":"and now?"}`)
	b.follow(id, 0, agentIs("error"))
	b.stop()
	// Another server, and a client that was not there: it is told all of it.
	b = serve(t, b.dir)
	var ready, named bool
	seen := b.follow(id, 0, func(it client.LegacyItem) bool {
		if it.Status != nil {
			ready = ready || it.Status.ID == "STATUS$READY" && it.ID > 0
			named = named || it.Status.ConversationTitle == "A new name" && it.ID > 0
		}
		return agentIs("error")(it)
	})
	if !ready || !named {
		t.Errorf("ready is told: %t, the title is told: %t", ready, named)
	}
	says(t, describe(seen), "acme/model-1", "STATUS$ERROR")
}

// secretive is a mind that says secrets in every place it can.
func secretive(secret, token string) mind {
	return steps(
		shell(fmt.Sprintf(`test %q = "$CANARY" && echo "they are"' equal'`, secret)),
		shell(`echo "$CANARY" | base64; printf 'user:%s' "$CANARY" | base64 -w0`),
		shell("echo "+token),
		use("task_tracker", map[string]any{"command": "plan", "task_list": []any{map[string]any{"id": "1", "title": "Use " + secret, "status": "todo", "notes": "and " + token}}}),
		use("think", map[string]any{"thought": "It is " + secret}),
		use("str_replace_editor", map[string]any{"command": "create", "path": "/workspace/notes", "file_text": "key=" + secret + "\n"}),
		use("finish", map[string]any{"message": "I used " + secret + " and " + token}),
	)
}

func TestDefect19MaskingMissesArraysAndMessage(t *testing.T) {
	t.Parallel()
	needLocal(t)
	l := newLab(t, "")
	secrets := birds{}
	secret, token := secrets.put("the custom secret"), secrets.put("the token")
	forge := website(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":7,"login":"ada"}`) })
	p := l.person(t, "secretive", secretive(secret, token),
		fmt.Sprintf(`"secrets_store":{"custom_secrets":{"CANARY":%q},"provider_tokens":{"gitea":{"token":%q,"host":%q}}}`, secret, token, forge))
	id := p.create("Do not use " + secret)
	defer func() { p.drop(id) }()
	streamed := p.follow(id, 0, agentIs("finished"))
	all := describe(p.events(id))
	says(t, all, "they are equal", "Use "+api.Masked, "It is "+api.Masked, "Do not use "+api.Masked, "I used "+api.Masked+" and "+api.Masked, `Running command: test \"`+api.Masked)
	_, trajectory, _ := p.raw("GET", "/api/conversations/"+id+"/trajectory", "")
	_, one, _ := p.raw("GET", "/api/conversations/"+id, "")
	for where, text := range map[string]string{"the events": all, "the stream": describe(streamed), "the trajectory": trajectory, "the conversation": one, "the server's log": l.logs.String()} {
		if found := secrets.in([]byte(text)); len(found) > 0 {
			t.Errorf("%s is in %s", found, where)
		}
	}
	if text, err := p.client.ReadFile(t.Context(), id, "notes"); err != nil || text != "key="+secret+"\n" {
		t.Errorf("the file has not got the real value: %v", err)
	}
	// A server that was just started knows them as well.
	l.stop()
	again := serve(t, l.dir, withSandbox(t, l.driver)...)
	p.base, p.client = again.base, client.New(again.base, p.key)
	if found := secrets.in([]byte(describe(p.events(id)))); len(found) > 0 {
		t.Errorf("%s is in the events after a restart", found)
	}
}

func TestDefect20ExportedTrajectoryNotReplayable(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	p := l.person(t, "recorder", steps(shell("echo made | tee -a made"), use("finish", map[string]any{"message": "It is made."})))
	id := p.begin("Make it.")
	p.follow(id, 0, agentIs("finished"))
	_, exported, _ := p.raw("GET", "/api/conversations/"+id+"/trajectory", "")
	var whole struct{ Trajectory json.RawMessage }
	if err := json.Unmarshal([]byte(exported), &whole); err != nil || !strings.Contains(exported, `"action":"system"`) {
		t.Fatalf("%v: %.300s", err, exported)
	}
	p.set(`"llm_model":"scripted/demo"`)
	for name, recording := range map[string]string{"as exported": exported, "the bare array": string(whole.Trajectory)} {
		asked := len(p.requests())
		made, err := p.client.Create(t.Context(), api.CreateConversation{ReplayJSON: api.Some(recording)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { p.drop(made.ConversationID) })
		p.follow(made.ConversationID, 0, agentIs("finished"))
		says(t, kinds(p.events(made.ConversationID)), "message", "run =run", "finish")
		if text, err := p.client.ReadFile(t.Context(), made.ConversationID, "made"); err != nil || text != "made\n" || len(p.requests()) != asked {
			t.Errorf("%s: the file has %q, %v, and the model was asked %d times", name, text, err, len(p.requests())-asked)
		}
	}
}

func TestDefect23RememberPromptAlwaysFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	p := l.person(t, "rememberer", func(a llmtest.Asked) llmtest.Reply {
		if strings.Contains(a.System, "<update_prompt>") {
			return llmtest.Reply{Text: "Here: <update_prompt>Remember to use make.</update_prompt>"}
		}
		return llmtest.Reply{Text: "I use make."}
	})
	id := p.begin("How is it built?")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	for _, it := range p.events(id) {
		if it.Event.Action == "message" {
			code, text, _ := p.raw("GET", fmt.Sprintf("/api/conversations/%s/remember-prompt?event_id=%d", id, it.ID), "")
			if code != http.StatusOK || text != `{"status":"success","prompt":"Remember to use make."}` {
				t.Errorf("%d %s", code, text)
			}
		}
	}
	all := p.requests()
	says(t, saidIn(all[len(all)-1]), "How is it built?", "I use make.")
}

func TestDefect26ConfirmationIneffective(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	var done atomic.Int64
	site := website(t, func(w http.ResponseWriter, _ *http.Request) { done.Add(1); fmt.Fprint(w, "hello") })
	tools := toolSite(t, nil)
	for name, c := range map[string]struct {
		call   llm.Call
		action string
	}{
		"run":    {shell("touch made"), "run"},
		"read":   {use("str_replace_editor", map[string]any{"command": "view", "path": "/etc/hostname"}), "read"},
		"edit":   {use("str_replace_editor", map[string]any{"command": "create", "path": "/workspace/made", "file_text": "x"}), "edit"},
		"browse": {use("fetch", map[string]any{"url": site}), "browse"},
		"mcp":    {use("parrot", map[string]any{"words": "hello"}), "call_tool_mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.person(t, "careful-"+name, steps(c.call), confirm, fmt.Sprintf(`"mcp_config":{"shttp_servers":[%q]}`, tools))
			id := p.begin("Go.")
			p.waiting(id, 0)
			got := p.events(id)
			if last := got[len(got)-1].Event; last.Action != c.action || !strings.Contains(string(last.Args), `"confirmation_state":"awaiting_confirmation"`) {
				t.Errorf("%s", describe(got))
			}
			p.post("/api/conversations/"+id+"/events", `{"action":"change_agent_state","args":{"agent_state":"user_rejected"}}`)
			p.follow(id, 0, agentIs("awaiting_user_input"))
			says(t, kinds(p.events(id)), c.action+" =user_rejected")
			if files, err := p.client.ListFiles(t.Context(), id, ""); err == nil && len(files) > 0 {
				t.Errorf("it was done: %v", files)
			}
		})
	}
	t.Cleanup(func() {
		if done.Load() > 0 {
			t.Error("what was rejected was done")
		}
	})
}

func TestDefect27RateLimitExhaustionWithoutNotice(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	var busy atomic.Bool
	busy.Store(true)
	p := l.person(t, "busy", func(llmtest.Asked) llmtest.Reply {
		if busy.Load() {
			return llmtest.Reply{Status: http.StatusTooManyRequests, Message: "Come back later.", RetryAfter: "0.001"}
		}
		return llmtest.Reply{Text: "Here I am."}
	})
	id := p.begin("Hello?")
	var retries, notices int
	seen := p.follow(id, 0, func(it client.LegacyItem) bool {
		if it.Status != nil && it.Status.ID == "STATUS$LLM_RETRY" {
			retries++
		}
		if it.Status != nil && it.Status.ID == "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE" && it.Status.Type == "error" {
			notices++
		}
		return it.Event != nil && agentIs("rate_limited")(it) && strings.Contains(string(it.Event.Extras), "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE")
	})
	if retries == 0 || notices == 0 {
		t.Errorf("%d retries and %d notices", retries, notices)
	}
	says(t, string(seen[len(seen)-1].Raw), "Come back later.", "Send a message to try again.")
	busy.Store(false)
	says(t, describe(p.ask(id, "And now?", "awaiting_user_input")), "Here I am.")
}

func TestDefect28StopDoesNotCancel(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	asked, gone := make(chan struct{}), make(chan struct{})
	p := l.person(t, "hasty", func(a llmtest.Asked) llmtest.Reply {
		close(asked)
		<-a.Gone
		close(gone)
		return llmtest.Reply{Text: "Too late."}
	})
	id := p.begin("Think for long.")
	<-asked
	p.post("/api/conversations/"+id+"/stop", "")
	<-gone
	p.follow(id, 0, agentIs("stopped"))
	if got := describe(p.events(id)); strings.Contains(got, "Too late.") {
		t.Errorf("%s", got)
	}
	l.mind("hasty", steps(shell("echo begun; sleep 1000")))
	busy := p.begin("Work for long.")
	p.begun(busy)
	pid := p.pid(busy)
	p.post("/api/conversations/"+busy+"/stop", "")
	p.gone(pid)
	if got := p.events(busy); !strings.HasSuffix(kinds(got), "run =run") || !strings.Contains(observed(t, got, "run"), "begun\n[Interrupted by stop") {
		t.Errorf("the call has no result: %s", describe(got))
	}
}
