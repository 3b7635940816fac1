package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
)

func TestDefect24CloneFailureUnreported(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app").behind(t, func(w http.ResponseWriter) bool {
		http.Error(w, "We are closed.", http.StatusServiceUnavailable)
		return false
	})
	p := newGitLab(t, f).person(t, "cloner", hello, f.stores(cloneToken))
	id, err := p.on("octo/app", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	seen := p.follow(id, 0, agentIs("error"))
	says(t, describe(seen), "The repository octo/app cannot be cloned", api.CodeGitClone)
	got, err := p.client.Conversation(t.Context(), id)
	if err != nil || got.Status != "STOPPED" || got.Reason == nil || !strings.Contains(*got.Reason, "octo/app") || len(p.requests()) != 0 {
		t.Errorf("%+v %v, and the model was asked %d times", got, err, len(p.requests()))
	}
}

func TestDefect25SetupScriptRunsTwice(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	f.fill("octo/app", map[string]string{"AGENTS.md": "Knots are tied twice here.\n", ".openhands/setup.sh": "export COLOUR=blue\necho once >> /workspace/ran\necho set up\n"})
	p := newGitLab(t, f).person(t, "setter", steps(shell(`cat /workspace/ran; echo "colour $COLOUR"`)), f.stores(cloneToken))
	id, err := p.on("octo/app", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "run"); got != "once\ncolour blue\n" {
		t.Errorf("%q", got)
	}
	says(t, saidIn(p.requests()[0]), "Knots are tied twice here.")
	// Nor does it run again when the conversation is resumed.
	p.post("/api/conversations/"+id+"/stop", "")
	p.post("/api/conversations/"+id+"/start", "{}")
	says(t, observed(t, p.ask(id, "Once more.", "awaiting_user_input"), "run"), "once\ncolour")
	all := describe(p.events(id))
	if n := strings.Count(all, `"content":"set up\n"`); n != 1 || strings.Contains(all, `once\nonce`) {
		t.Errorf("the script is told of %d times", n)
	}
}

func TestDefect31ForeignCommitHookNeverCalled(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	f.fill("octo/app", map[string]string{
		".openhands/pre-commit.sh": "echo ours\n",
		".openhands/setup.sh":      "printf '#!/bin/sh\\necho foreign\\ntest ! -e forbid\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit\n",
	})
	p := newGitLab(t, f).person(t, "committer", steps(
		shell(`echo x > a; git add a; git commit -qm A; git log -1 --format=%s`),
		shell(`touch forbid; git add forbid; git commit -qm B; git log -1 --format=%s`)), f.stores(cloneToken), `"git_user_name":"Ada","git_user_email":"ada@example.org"`)
	id, err := p.on("octo/app", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	var said []string
	for _, it := range p.events(id) {
		if it.Event.Observation == "run" && it.Event.Source == "agent" {
			said = append(said, it.Event.Content)
		}
	}
	if want := []string{"ours\nforeign\nA\n", "ours\nforeign\nA\n"}; !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

// Two people work at the same time. Each has their own name in commits and their
// own share of the machine, before and after the other changed theirs.
func TestDefect32IdentityIsProcessGlobal(t *testing.T) {
	t.Parallel()
	needLocal(t)
	l := newLab(t, "", "--sandbox-cpus", "1", "--sandbox-memory", "256M")
	const look = `git init -q . 2>/dev/null; git commit -q --allow-empty -m x; git log -1 --format='%an|%ae|%cn'; ulimit -d`
	people := map[string]int64{"ann": 1, "ben": 4}
	ids := map[string]string{}
	all := map[string]*person{}
	for name, factor := range people {
		all[name] = l.person(t, name, steps(shell(look)), fmt.Sprintf(`"git_user_name":%q,"git_user_email":"%s@example.org","remote_runtime_resource_factor":%d`, "The "+name, name, factor))
		ids[name] = all[name].idle()
	}
	for range 2 {
		for name, factor := range people {
			p, id := all[name], ids[name]
			got := observed(t, p.ask(id, "Commit.", "awaiting_user_input"), "run")
			says(t, got, fmt.Sprintf("The %s|%s@example.org|The %s", name, name, name))
			memory := factor * 256 << 20
			if limits := p.groupLimits(id); len(limits) > 0 {
				if !slices.Contains(limits, strconv.FormatInt(memory, 10)) {
					t.Errorf("%s has the limits %v, want %d", name, limits, memory)
				}
			} else {
				says(t, got, "\n"+strconv.FormatInt(memory>>10, 10)+"\n")
			}
		}
		all["ben"].set(`"git_user_name":"Nobody","remote_runtime_resource_factor":8`) // for what is started later
	}
}

func TestDefect34InstructionsLostOnResume(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	f.fill("octo/app", map[string]string{"README.md": "Hello\n"})
	p := newGitLab(t, f).person(t, "resumer", steps(shell("cat README.md")), f.stores(cloneToken))
	made, err := p.client.Create(t.Context(), api.CreateConversation{Repository: api.Some("octo/app"), GitProvider: api.Some("gitea"), InitialUserMsg: api.Some("Go on."),
		ConversationInstructions: api.Some("Speak like a sailor."), MCPConfig: api.Some(api.MCPConfig{SSEServers: []api.MCPServer{}, StdioServers: []api.StdioServer{}, SHTTPServers: []api.MCPServer{{URL: toolSite(t, nil)}}})})
	if err != nil {
		t.Fatal(err)
	}
	id := made.ConversationID
	t.Cleanup(func() { p.drop(id) })
	p.follow(id, 0, agentIs("awaiting_user_input"))
	pid := p.pid(id)
	p.post("/api/conversations/"+id+"/stop", "")
	p.gone(pid)
	// The container is gone, too.
	if err := os.RemoveAll(filepath.Join(p.dir, "boxes", id)); err != nil {
		t.Fatal(err)
	}
	p.post("/api/conversations/"+id+"/start", "{}")
	before := len(p.requests())
	last := p.events(id)
	if err := p.client.Say(t.Context(), id, "Once more.", ""); err != nil {
		t.Fatal(err)
	}
	ran, waits := false, agentIs("awaiting_user_input") // which it is also when it has just started
	p.follow(id, last[len(last)-1].ID, func(it client.LegacyItem) bool {
		ran = ran || it.Event != nil && it.Event.Observation == "run"
		return ran && waits(it)
	})
	all := p.events(id)
	if got := observed(t, all, "run"); got != "Hello\n" {
		t.Errorf("the repository was not cloned again: %q", got)
	}
	again := p.requests()[before]
	if !strings.Contains(string(again.Body), "Speak like a sailor.") || !slices.Contains(again.Tools, "parrot") {
		t.Errorf("%v %.300s", again.Tools, again.System)
	}
	if got, err := p.client.Conversation(t.Context(), id); err != nil || got.SelectedRepository == nil || *got.SelectedRepository != "octo/app" {
		t.Errorf("%+v %v", got, err)
	}
}
