package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/forge"
	"deckhand/internal/gitprovider/gitea"
)

// This file is all that a new git provider needs: what it declares, and a line
// that registers it.
func init() { forge.Register(depot) }

// depot speaks Gitea's API, and has words and headers of its own.
var depot = call.Adapter{New: gitea.New, Descriptor: gitprovider.Descriptor{
	Name: "depot", Title: "Depot", Host: "depot.example",
	Terms:   gitprovider.Terms{Request: "change request", Short: "CR", Checks: "jobs", Mark: "~"},
	Tool:    "create_pr",
	Webhook: &gitprovider.Webhook{Events: []string{"X-Depot-Event"}, IDs: []string{"X-Depot-Delivery"}, Signed: gitprovider.HubSigned("X-Depot-Signature"), Read: gitprovider.ReadHub},
}}

// A provider that is registered takes a token, starts the agent by its webhook and gets
// the answer, without a change anywhere else.
func TestNewProvider(t *testing.T) {
	t.Parallel()
	k := newTracker(t)
	l := newGitLab(t, k.gitServer)
	p := l.person(t, "ada", steps(shell("git log -1 --format=%s")), fmt.Sprintf(`"secrets_store":{"provider_tokens":{"depot":{"token":%q,"host":%q}}}`, trackerToken, k.url))
	made, path := p.integrate(api.CreateIntegration{Provider: "depot"})
	body := comment(1, "ada", "@deckhand mend it")
	mac := hmac.New(sha256.New, []byte(made.Secret))
	mac.Write([]byte(body))
	code, text, _ := p.raw("POST", path, body, "X-Session-API-Key", "", "X-Depot-Event", "issue_comment", "X-Depot-Delivery", "d-1", "X-Depot-Signature", hex.EncodeToString(mac.Sum(nil)))
	if code != http.StatusAccepted || text != `{"status":"accepted","reason":null}` {
		t.Fatalf("%d %s", code, text)
	}
	said := <-k.posted
	page, err := p.client.IntegrationDeliveries(t.Context(), made.ID, 0, 10)
	if err != nil || len(page.Results) != 1 || page.Results[0].ConversationID == nil {
		t.Fatalf("%+v %v", page, err)
	}
	id := *page.Results[0].ConversationID
	t.Cleanup(func() { p.drop(id) })
	says(t, said, "/conversations/"+id)
	c, err := p.client.Conversation(t.Context(), id)
	if err != nil || *c.SelectedRepository != "octo/app" || *c.GitProvider != "depot" {
		t.Errorf("%+v %v", c, err)
	}
	asked := p.requests()[0]
	says(t, saidIn(asked), "in the repository octo/app on Depot", "open a change request with create_pr")
	says(t, observed(t, p.events(id), "run"), "Begin") // cloned with the token
	in := api.CreateConversation{Repository: api.Some("octo/app"), GitProvider: api.Some("depot")}
	another, err := p.client.Create(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.drop(another.ConversationID) })
	in.GitProvider = api.Some("warehouse")
	if _, err := p.client.Create(t.Context(), in); err == nil {
		t.Error("a provider that is not registered was taken")
	}
}
