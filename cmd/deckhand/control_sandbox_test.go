package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/sandbox/docker/dockertest"
)

// begun waits until a command has written the word.
func (b *box) begun(id string) {
	b.t.Helper()
	b.follow(id, 0, func(it client.LegacyItem) bool { return it.Delta != nil && strings.Contains(it.Delta.Text, "begun") })
}

// post makes a request that must succeed.
func (b *box) post(path, body string) {
	b.t.Helper()
	if code, text, _ := b.raw("POST", path, body); code != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, code, text)
	}
}

// meta is what the local driver remembers of a sandbox.
func (b *box) pid(id string) int {
	b.t.Helper()
	var meta struct{ PID int }
	text, err := os.ReadFile(filepath.Join(b.dir, "boxes", id, "meta.json"))
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return meta.PID
}

// Stopping ends the command with everything it started, and its call has a result.
func TestStopEndsTheCommand(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ echo begun; sleep 1000 & sleep 1000")
	b.begun(id)
	pid := b.pid(id)
	b.post("/api/conversations/"+id+"/stop", "")
	seen := b.follow(id, 0, agentIs("stopped"))
	if text := describe(seen); !strings.Contains(text, `"content":"begun\n`) || !strings.Contains(text, `\n[Interrupted by stop; the output ends here.]"`) {
		t.Errorf("the call has no result: %s", text)
	}
	b.gone(pid)
	b.remove(id)
}

// gone waits for the end of a process.
func (b *box) gone(pid int) {
	b.t.Helper()
	b.until(fmt.Sprintf("process %d ends", pid), func() bool { return syscall.Kill(pid, 0) != nil })
}

// A pause with now interrupts the command and keeps what it printed, and its
// shell; what comes after goes on in it.
func TestPauseInterruptsTheCommand(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ kept=yes; echo begun; sleep 1000")
	b.begun(id)
	b.post("/api/conversations/"+id+"/events", `{"action":"change_agent_state","args":{"agent_state":"paused","now":true}}`)
	if text := describe(b.follow(id, 0, agentIs("paused"))); !strings.Contains(text, `begun\n[Interrupted by pause; the output ends here.]`) {
		t.Errorf("what the command printed is lost: %s", text)
	}
	b.post("/api/conversations/"+id+"/message", `{"message":"$ echo kept is $kept"}`)
	b.said(id, 0, "kept is yes")
	b.remove(id)
}

// A runner that is frozen in the middle of a line: the result has the line as far as it
// came, and says that the sandbox did not respond.
func TestFrozenRunnerKeepsWhatWasPrinted(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ echo one; printf 'begun, and ha'; sleep 1000")
	b.begun(id)
	if err := syscall.Kill(b.pid(id), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	text := describe(b.follow(id, 0, agentIs("awaiting_user_input")))
	if !strings.Contains(text, "AGENT_ERROR$OUTCOME_UNKNOWN") || !strings.Contains(text, `one\nbegun, and ha\n[The output ends here. The sandbox did not respond for 30s and was ended while this command ran.`) {
		t.Errorf("the call's outcome: %s", text)
	}
	b.remove(id)
}

// A sandbox that dies with a command in it: that is noticed and said, the outcome
// is unknown, and the command is not run again.
func TestSandboxDiesWithACommand(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ echo begun | tee -a runs; sleep 1000")
	b.begun(id)
	if err := syscall.Kill(b.pid(id), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	seen := b.follow(id, 0, agentIs("awaiting_user_input"))
	text := describe(seen)
	if !strings.Contains(text, "AGENT_ERROR$OUTCOME_UNKNOWN") || !strings.Contains(text, `begun\n[The output ends here. The sandbox ended while this command ran.`) {
		t.Errorf("the call's outcome: %s", text)
	}
	told := false
	b.follow(id, 0, func(it client.LegacyItem) bool {
		told = told || it.Status != nil && it.Status.ID == "STATUS$ERROR_RUNTIME_DISCONNECTED"
		return told
	})
	b.post("/api/conversations/"+id+"/message", `{"message":"$ wc -l < runs; echo counted"}`)
	if got := b.said(id, 0, "counted"); !strings.Contains(got, `"content":"1\ncounted`) {
		t.Errorf("it ran more than once: %s", got)
	}
	b.remove(id)
}

// A sandbox that dies without a command in it: the next result says what is gone, and only that one.
func TestSandboxDiesIdle(t *testing.T) {
	t.Parallel()
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	id := b.create("$ export A=1; echo set")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	if err := syscall.Kill(b.pid(id), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command, answer string
		told            bool
	}{{"echo A=$A first", "A= first", true}, {"echo A=$A second", "A= second", false}} {
		b.post("/api/conversations/"+id+"/message", `{"message":"$ `+c.command+`"}`)
		if got := b.said(id, 0, c.answer); strings.Contains(got, "was restarted before this command") != c.told {
			t.Errorf("%s: %s", c.command, got)
		}
	}
	b.remove(id)
}

// A custom secret is in the environment inside, and in nothing that comes out.
func TestCustomSecretsAreInsideAndMasked(t *testing.T) {
	t.Parallel()
	const canary = "s3cr3t-c4n4ry-value"
	b := serve(t, "", withSandbox(t, "local")...)
	b.demo("scripted/demo")
	b.post("/api/settings", `{"secrets_store":{"custom_secrets":{"CANARY":"`+canary+`"}}}`)
	id := b.create("$ echo the secret is $CANARY; for c in $(echo $CANARY | grep -o .); do printf %s $c; sleep 0.01; done; test ${#CANARY} = 19 && echo whole")
	got := b.said(id, 0, "whole")
	if strings.Contains(got, canary) || !strings.Contains(got, "the secret is ***") {
		t.Errorf("%s", got)
	}
	if strings.Contains(b.logs.String(), canary) {
		t.Error("the secret is in the log")
	}
	b.remove(id)
}

// What leaves a sandbox is in its ledger, with the call that caused it, and
// private addresses are refused unless the operator says otherwise.
func TestEgressOfAConversation(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from inside the network") }))
	t.Cleanup(inner.Close)
	address := strings.TrimPrefix(inner.URL, "http://")
	b := serve(t, "", append(withSandbox(t, "local"), "--egress-private", address)...)
	b.demo("scripted/demo")
	id := b.create("$ curl -sS --noproxy '' " + inner.URL + "; echo; curl -sS http://127.0.0.2:1/; curl -sS --noproxy '*' " + inner.URL + " || echo no direct way")
	got := b.said(id, 0, "no direct way")
	if !strings.Contains(got, "from inside the network") {
		t.Errorf("%s", got)
	}
	_, text, _ := b.raw("GET", "/api/conversations/"+id+"/egress", "")
	var ledger api.Egress
	if err := json.Unmarshal([]byte(text), &ledger); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if r := ledger.Requests; len(r) != 2 || r[0].Verdict != "refused" || r[1].Verdict != "allowed" || r[1].Call != "call_1" || r[1].Received == 0 {
		t.Errorf("the ledger: %s", text)
	}
	if code, text, _ := b.raw("PUT", "/api/conversations/"+id+"/egress", `{"mode":"off"}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	b.post("/api/conversations/"+id+"/message", `{"message":"$ curl -sS -o /dev/null -w '%{http_code} off' --noproxy '' `+inner.URL+`"}`)
	b.said(id, 0, "403 off")
	b.remove(id)
}

// An image that cannot be had ends the start in STOPPED, with a reason.
func TestImageThatCannotBeHad(t *testing.T) {
	t.Parallel()
	host := dockertest.Engine(t)
	b := serve(t, "", append(withSandbox(t, "docker"), "--docker-host", host)...)
	b.demo("scripted/demo")
	b.post("/api/settings", `{"sandbox_base_container_image":"127.0.0.1:1/nobody/has-this:1"}`)
	id := b.create("$ true")
	b.follow(id, 0, agentIs("error"))
	var c api.Conversation
	_, text, _ := b.raw("GET", "/api/conversations/"+id, "")
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Status != "STOPPED" || c.Reason == nil || !strings.Contains(*c.Reason, "nobody/has-this:1") {
		t.Errorf("%s", text)
	}
}

// A conversation in a container: the start is told step by step, and the
// workspace outlives the stop.
func TestCommandRunsInAContainer(t *testing.T) {
	t.Parallel()
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	b := serve(t, "", append(withSandbox(t, "docker"), "--docker-host", host)...)
	b.demo("scripted/demo")
	b.post("/api/settings", `{"sandbox_base_container_image":"`+image+`","remote_runtime_resource_factor":1}`)
	id := b.create("$ echo one > kept; pwd; echo done")
	b.said(id, 0, "/workspace")
	steps := map[string]bool{}
	b.follow(id, 0, func(it client.LegacyItem) bool {
		if it.Status != nil {
			steps[it.Status.ID] = true
		}
		return steps["STATUS$STARTING_RUNTIME"] && steps["STATUS$READY"]
	})
	b.post("/api/conversations/"+id+"/stop", "")
	b.post("/api/conversations/"+id+"/message", `{"message":"$ cat kept"}`)
	b.said(id, 0, `"content":"one`)
	b.remove(id)
	b.until("the container goes", func() bool { return !dockertest.Sandboxes(t)[id] })
}
