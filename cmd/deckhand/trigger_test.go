package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
)

const trackerToken = "tracker-token-0123456789"

// issueTracker is a git server with the issue 7 of octo/app, in the shape of Gitea.
type issueTracker struct {
	*gitServer
	posted chan string

	mu sync.Mutex
	// hold is waited for before the issue is shown.
	hold func()
	said []string
}

func newTracker(t *testing.T) *issueTracker {
	t.Helper()
	k := &issueTracker{gitServer: newGitServer(t, trackerToken, "octo/app"), posted: make(chan string, 100), hold: func() {}}
	behind, err := url.Parse(k.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(behind)
	k.url = website(t, func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.Path, "/api/v1/repos/octo/app/issues/7"); ok && strings.Contains(r.Header.Get("Authorization"), trackerToken) {
			k.issue(w, r, path)
			return
		}
		pass.ServeHTTP(w, r)
	})
	return k
}

func (k *issueTracker) issue(w http.ResponseWriter, r *http.Request, path string) {
	if path == "" {
		k.mu.Lock()
		hold := k.hold
		k.mu.Unlock()
		hold()
		answer(w, http.StatusOK, map[string]any{"number": 7, "title": "It is broken", "body": "The wheel came off.", "state": "open", "user": map[string]any{"login": "bob"}, "html_url": k.url + "/octo/app/issues/7"})
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Method == http.MethodPost {
		var in struct{ Body string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		k.said = append(k.said, in.Body)
		k.posted <- in.Body
		answer(w, http.StatusCreated, map[string]any{"id": len(k.said)})
		return
	}
	list := []map[string]any{}
	for _, c := range k.said {
		list = append(list, map[string]any{"body": c, "user": map[string]any{"login": "ada"}})
	}
	answer(w, http.StatusOK, list)
}

// comment is what Gitea sends when somebody comments on the issue.
func comment(id int, who, text string) string {
	now := time.Now().UTC().Format(time.RFC3339)
	b, _ := json.Marshal(map[string]any{"action": "created", "is_pull": false, "repository": map[string]any{"full_name": "octo/app"}, "sender": map[string]any{"login": who},
		"issue":   map[string]any{"number": 7, "title": "It is broken", "body": "The wheel came off.", "user": map[string]any{"login": "bob"}, "updated_at": now},
		"comment": map[string]any{"id": id, "body": text, "user": map[string]any{"login": who}, "created_at": now}})
	return string(b)
}

// tells sends a delivery as Gitea does, without a key of ours.
func (b *box) tells(path, body, secret, delivery string) (int, string) {
	b.t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	code, text, _ := b.raw("POST", path, body, "X-Session-API-Key", "", "X-Gitea-Event", "issue_comment", "X-Gitea-Delivery", delivery, "X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
	return code, text
}

// integrate makes an integration; its path is what the tracker sends to.
func (b *box) integrate(in api.CreateIntegration) (made api.NewIntegration, path string) {
	b.t.Helper()
	made, err := b.client.CreateIntegration(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return made, strings.TrimPrefix(made.WebhookURL, b.base)
}

// A comment below an issue starts a conversation on the repository, with the
// settings of the user whose integration it is; the answer is posted with a link;
// another comment continues it. No secret is in the log or in an event.
func TestCommentStartsAConversation(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	l := newGitLab(t, k.gitServer)
	p := l.person(t, "ada", steps(shell("git log -1 --format=%s")), k.stores(trackerToken))
	made, path := p.integrate(api.CreateIntegration{Provider: "gitea"})
	if len(made.AllowedUsers) != 1 || made.AllowedUsers[0] != "ada" || made.Host != k.url || made.Mention != "@deckhand" || path != "/integrations/gitea/webhook?integration="+made.ID || len(made.Warnings) != 0 {
		t.Fatalf("%+v", made.Integration)
	}
	if code, text := p.tells(path, comment(1, "ada", "@deckhand mend it"), made.Secret, "d-1"); code != http.StatusAccepted || text != `{"status":"accepted","reason":null}` {
		t.Fatalf("%d %s", code, text)
	}
	said := <-k.posted
	page, err := p.client.IntegrationDeliveries(t.Context(), made.ID, 0, 10)
	if err != nil || len(page.Results) != 1 || page.Results[0].ConversationID == nil {
		t.Fatalf("%+v %v", page, err)
	}
	id := *page.Results[0].ConversationID
	t.Cleanup(func() { p.drop(id) })
	says(t, said, "[Conversation]("+p.base+"/conversations/"+id+")", "[//]: # (deckhand "+id)
	conversation, err := p.client.Conversation(t.Context(), id)
	if err != nil || *conversation.Trigger != "resolver" || *conversation.SelectedRepository != "octo/app" || *conversation.GitProvider != "gitea" {
		t.Errorf("%+v %v", conversation, err)
	}
	says(t, saidIn(p.requests()[0]), "ada asks for your help with issue #7 in the repository octo/app on Gitea", "The wheel came off.", "@deckhand mend it")
	says(t, observed(t, p.events(id), "run"), "Begin")

	p.lab.mind("ada", steps())
	if code, text := p.tells(path, comment(2, "ada", "@deckhand and now?"), made.Secret, "d-2"); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, text)
	}
	<-k.posted
	page, err = p.client.IntegrationDeliveries(t.Context(), made.ID, 0, 1)
	if err != nil || len(page.Results) != 1 || *page.Results[0].ConversationID != id || page.Next == nil {
		t.Errorf("%+v %v", page, err)
	}
	if text := describe(p.events(id)) + l.logs.String(); strings.Contains(text, trackerToken) || strings.Contains(text, made.Secret) {
		t.Error("a secret is in an event or in the log")
	}
}

// The routes of the integrations: what a stranger learns, and what belongs to whom.
func TestIntegrationsOverHTTP(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	l := newLab(t, "")
	p, other := l.person(t, "ada", steps(), k.stores(trackerToken)), l.person(t, "bob", steps(), k.stores(trackerToken))
	made, path := p.integrate(api.CreateIntegration{Provider: "gitea", AllowedUsers: api.Some([]string{"*"}), Repositories: api.Some([]string{"octo/other"})})
	theirs, _ := other.integrate(api.CreateIntegration{Provider: "gitea"})
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "Anyone") {
		t.Errorf("%q", made.Warnings)
	}
	const bare = "/integrations/gitea/webhook"
	hello := comment(1, "ada", "@deckhand mend it")
	for name, test := range map[string]struct {
		path, body, secret string
		code               int
		text               string
	}{
		"another repository": {path, hello, made.Secret, 200, `{"status":"ignored","reason":"The repository is not in the integration's list of repositories."}`},
		"a wrong secret":     {path, hello, "x", 401, `{"detail":"Unauthorized"}`},
		"another's secret":   {path, hello, theirs.Secret, 401, `{"detail":"Unauthorized"}`},
		"nobody's":           {bare + "?integration=x", hello, made.Secret, 401, `{"detail":"Unauthorized"}`},
		"no provider":        {"/integrations/svn/webhook", hello, made.Secret, 404, "Not found"},
		"not JSON":           {bare, "{", made.Secret, 400, "not a delivery of this provider"},
		"too large":          {bare, strings.Repeat(" ", 5<<20+1), made.Secret, 413, "5 MiB"},
	} {
		if code, text := p.tells(test.path, test.body, test.secret, name); code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if code, text := p.tells(bare, hello, made.Secret, "again"); code != 200 || !strings.Contains(text, `"known"`) {
		t.Errorf("a replay: %d %s", code, text)
	}
	if page, err := p.client.IntegrationDeliveries(t.Context(), made.ID, 0, 10); err != nil || len(page.Results) != 2 {
		t.Errorf("%+v %v", page, err)
	}
	if page, err := other.client.IntegrationDeliveries(t.Context(), theirs.ID, 0, 10); err != nil || len(page.Results) != 0 {
		t.Errorf("%+v %v", page, err)
	}
	limited := false
	for i := 0; i < 100 && !limited; i++ {
		code, _ := p.tells(path, hello, "x", "")
		limited = code == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("a stranger may try as often as they like")
	}
	integrationsAreManaged(t, p, other, made)
}

func integrationsAreManaged(t *testing.T, p, other *person, made api.NewIntegration) {
	t.Helper()
	changed, err := p.client.PatchIntegration(t.Context(), made.ID, api.PatchIntegration{Mention: api.Some("helper"), Label: api.Some(""), AllowedUsers: api.Some([]string{}), RotateSecret: api.Some(true)})
	if err != nil || changed.Mention != "@helper" || changed.Label != "" || changed.AllowedUsers[0] != "ada" || changed.Secret == nil || *changed.Secret == made.Secret || len(changed.Warnings) != 0 {
		t.Errorf("%+v %v", changed, err)
	}
	if got, err := p.client.Integration(t.Context(), made.ID); err != nil || got.Mention != "@helper" || got.Repositories[0] != "octo/other" {
		t.Errorf("%+v %v", got, err)
	}
	for name, body := range map[string]string{
		"a provider": `{"provider":"svn"}`, "a mention": `{"provider":"gitea","mention":"a b"}`, "a repository": `{"provider":"gitea","repositories":["--x"]}`,
		"a user": `{"provider":"gitea","allowed_users":[""]}`, "no token": `{"provider":"github"}`, "a field": `{"provider":"gitea","secret":"x"}`,
	} {
		if code, text, _ := p.raw("POST", "/api/integrations", body); code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if _, err := other.client.Integration(t.Context(), made.ID); !client.IsNotFound(err) {
		t.Errorf("another's: %v", err)
	}
	if err := other.client.DeleteIntegration(t.Context(), made.ID); !client.IsNotFound(err) {
		t.Errorf("another's: %v", err)
	}
	if err := p.client.DeleteIntegration(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	if list, err := p.client.Integrations(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

// The server is killed after it recorded a delivery and before it did anything
// about it. The next one does it, once.
func TestKilledBetweenRecordAndAction(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	needLocal(t)
	asked, let := make(chan struct{}, 8), make(chan struct{})
	k.hold = func() { asked <- struct{}{}; <-let }
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append(withSandbox(t, "local"), "--egress-private", k.address())
	b, process := spawn(t, dir, args...)
	b.demo("scripted/demo")
	b.post("/api/settings", "{"+k.stores(trackerToken)+"}")
	made, path := b.integrate(api.CreateIntegration{Provider: "gitea"})
	if code, text := b.tells(path, comment(1, "ada", "@deckhand mend it"), made.Secret, "d-1"); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, text)
	}
	<-asked
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	close(let)
	b, _ = spawn(t, dir, args...)
	<-k.posted
	if code, text := b.tells(path, comment(1, "ada", "@deckhand mend it"), made.Secret, "d-1"); code != http.StatusOK || !strings.Contains(text, "known") {
		t.Errorf("sent once more: %d %s", code, text)
	}
	list, err := b.client.Conversations(t.Context(), url.Values{})
	if err != nil || len(list.Results) != 1 || *list.Results[0].Trigger != "resolver" {
		t.Fatalf("%+v %v", list, err)
	}
	b.remove(list.Results[0].ConversationID)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.said) != 1 {
		t.Errorf("%q", k.said)
	}
	if strings.Contains(fmt.Sprint(b.logs), trackerToken) {
		t.Error("the token is in the log")
	}
}
