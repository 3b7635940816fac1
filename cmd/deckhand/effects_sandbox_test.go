package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/sandbox/docker/dockertest"
)

// The factor multiplies the limits of the server, which are a fifth of a processor and
// 256 MB for this test: less than any machine has, or there would be nothing to limit.
func TestResourceFactor(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", "--sandbox-cpus", "0.2", "--sandbox-memory", "256M")
	if l.driver != "local" {
		dockertest.Missing(t, "without a sandbox there are no limits")
	}
	p := l.person(t, "resources", steps(shell("ulimit -d")))
	for _, factor := range []int64{1, 4} {
		p.set(`"remote_runtime_resource_factor":` + strconv.FormatInt(factor, 10))
		id := p.begin("Go.")
		p.follow(id, 0, agentIs("awaiting_user_input"))
		memory := factor * 256 << 20
		limits := p.groupLimits(id)
		if len(limits) == 0 { // nobody gave this user a control group, so it is a limit of each process
			if got := strings.TrimSpace(observed(t, p.events(id), "run")); got != strconv.FormatInt(memory>>10, 10) {
				t.Errorf("with factor %d a process may have %s KB", factor, got)
			}
			continue
		}
		for _, want := range []int64{memory, factor * 20_000} {
			if !strings.Contains(" "+strings.Join(limits, " ")+" ", " "+strconv.FormatInt(want, 10)+" ") {
				t.Errorf("with factor %d the limits are %v, want %d among them", factor, limits, want)
			}
		}
	}
}

// groupLimits are those of the control groups of a sandbox.
func (p *person) groupLimits(id string) []string {
	p.t.Helper()
	var meta struct{ Groups []string }
	text, err := os.ReadFile(filepath.Join(p.dir, "boxes", id, "meta.json"))
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for _, dir := range meta.Groups {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				out = append(out, strings.Fields(string(b))[0])
			}
		}
	}
	return out
}

// What the factor does is tested with a server that has small limits; here, that
// other factors are refused.
func effectOfResources(t *testing.T, l *lab) {
	p := l.person(t, "factors", nil, `"remote_runtime_resource_factor":8`)
	if n := p.settings().RemoteRuntimeResourceFactor; n == nil || *n != 8 {
		t.Errorf("%v", n)
	}
	if code, text, _ := p.raw("POST", "/api/settings", `{"remote_runtime_resource_factor":3}`); code != 422 {
		t.Errorf("%d %s", code, text)
	}
}

// A secret is there for commands, told to the model by its name, and in nothing
// that anybody reads.
func effectOfSecrets(t *testing.T, l *lab) {
	const canary, token = "c4n4ry-of-the-keeper", "ghp_t0ken0fTheKeeper0123456789"
	hub := website(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":1,"login":"keeper"}`) })
	p := l.person(t, "keeper", steps(shell("echo it is $DEPLOY_KEY; echo length ${#DEPLOY_KEY}; echo $DEPLOY_KEY > deployed; env | grep -c ghp_")),
		`"secrets_store":{"custom_secrets":{"DEPLOY_KEY":{"secret":"`+canary+`","description":"for the staging server"}},"provider_tokens":{"github":{"token":"`+token+`","host":"`+hub+`"}}}`)
	id := p.begin("Deploy it.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	all := p.requests()
	if shown := string(all[0].Body); !strings.Contains(shown, "DEPLOY_KEY") || !strings.Contains(shown, "for the staging server") {
		t.Errorf("the model does not know of the secret: %s", shown)
	}
	got := observed(t, p.events(id), "run")
	if !strings.Contains(got, "length "+strconv.Itoa(len(canary))) || !strings.Contains(got, "it is ***") || !strings.HasSuffix(strings.TrimSpace(got), "\n0") {
		t.Errorf("the command says %q", got)
	}
	if _, whole, _ := p.raw("GET", "/api/settings", ""); strings.Contains(whole, canary) || strings.Contains(whole, token) || !strings.Contains(whole, "DEPLOY_KEY") || !strings.Contains(whole, "github") {
		t.Errorf("%s", whole)
	}
	var seen strings.Builder
	for _, a := range all {
		seen.Write(a.Body)
	}
	for where, text := range map[string]string{"the model's requests": seen.String(), "the events": describe(p.events(id)), "the stream": describe(p.follow(id, 0, agentIs("awaiting_user_input"))), "the server's log": l.logs.String()} {
		if strings.Contains(text, canary) || strings.Contains(text, token) {
			t.Errorf("a secret is in %s", where)
		}
	}
	p.repositoryByToken(token)
	p.set(`"secrets_store":{"custom_secrets":{"DEPLOY_KEY":null}}`)
	if got := p.first(); strings.Contains(string(got.Body), "DEPLOY_KEY") {
		t.Error("the model is told of a secret that was removed")
	}
}

// repositoryByToken: a token opens the repositories of the host it was stored for.
func (p *person) repositoryByToken(token string) {
	p.t.Helper()
	host := website(p.t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v4/user" { // the token is tried before it is stored
			fmt.Fprint(w, `{"id":1,"username":"keeper"}`)
			return
		}
		if _, password, _ := r.BasicAuth(); password != token || r.URL.Path != "/ada/engine.git/info/refs" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	})
	in := api.CreateConversation{Repository: api.Some("ada/engine"), GitProvider: api.Some("gitlab")}
	p.set(`"secrets_store":{"provider_tokens":{"gitlab":{"token":"` + token + `","host":"` + host + `"}}}`)
	made, err := p.client.Create(p.t.Context(), in)
	if err != nil {
		p.t.Errorf("with the token: %v", err)
	} else {
		p.drop(made.ConversationID)
	}
	p.set(`"secrets_store":{"provider_tokens":{"gitlab":{"token":"","host":"` + host + `"},"github":null}}`)
	if _, err := p.client.Create(p.t.Context(), in); codeOf(err) != api.CodeGitAuthentication || statusOf(err) != http.StatusBadRequest {
		p.t.Errorf("without the token: %v", err)
	}
}

// author commits something and looks who did.
var author = steps(shell("git init -q . && git commit -q --allow-empty -m 'Begin' && git log --format='%an|%ae|%cn|%ce'"))

func effectOfGitName(t *testing.T, l *lab) {
	p := l.person(t, "author", author, `"git_user_name":"Grace Hopper","git_user_email":"grace@example.org"`)
	id := p.begin("Go.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "run"); !strings.Contains(got, "Grace Hopper|grace@example.org|Grace Hopper|grace@example.org") {
		t.Errorf("%s", got)
	}
}

// Two people commit at the same time, each under their own address.
func effectOfGitEmail(t *testing.T, l *lab) {
	for _, name := range []string{"alice", "bert"} {
		p := l.person(t, name, author, `"git_user_name":"The `+name+`","git_user_email":"`+name+`@example.org"`)
		id := p.begin("Go.")
		p.follow(id, 0, agentIs("awaiting_user_input"))
		if got := observed(t, p.events(id), "run"); !strings.Contains(got, "The "+name+"|"+name+"@example.org") {
			t.Errorf("%s", got)
		}
	}
}
