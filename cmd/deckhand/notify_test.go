package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"deckhand/api"
	"deckhand/client"
)

// hookNews is what a webhook was told.
type hookNews struct {
	id, kind, conversation, state string
}

// ear listens for webhooks and checks their signatures.
type ear struct {
	t    *testing.T
	news chan hookNews
	// secret signs what comes.
	secret func() string
}

// listen makes the ear reachable: at a listener, or anywhere if it is nil.
func listen(t *testing.T, e *ear, at net.Listener) string {
	e.t, e.news = t, make(chan hookNews, 1000)
	server := httptest.NewUnstartedServer(e)
	if at != nil {
		server.Listener.Close()
		server.Listener = at
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL + "/hook"
}

func (e *ear) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	verifier, err := standardwebhooks.NewWebhook(e.secret())
	if err == nil {
		err = verifier.Verify(body, r.Header)
	}
	var m struct {
		Type string
		Data struct {
			ConversationID string `json:"conversation_id"`
			AgentState     string `json:"agent_state"`
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		e.t.Errorf("%v: %s", err, body)
	}
	e.news <- hookNews{r.Header.Get("Webhook-Id"), m.Type, m.Data.ConversationID, m.Data.AgentState}
}

// hook makes a webhook and says what signs its deliveries.
func (b *box) hook(url string, events ...string) api.NewWebhook {
	b.t.Helper()
	in := api.CreateWebhook{URL: url}
	if events != nil {
		in.Events = api.Some(events)
	}
	made, err := b.client.CreateWebhook(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// A conversation's way, as a webhook hears of it.
func TestWebhookHearsOfAConversation(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	secret := make(chan string, 1)
	e := &ear{secret: func() string { s := <-secret; secret <- s; return s }}
	made := b.hook(listen(t, e, nil))
	secret <- made.Secret
	id := b.create("hello")
	want := []hookNews{{kind: "conversation.created", state: "loading"}, {kind: "conversation.state_changed", state: "running"},
		{kind: "conversation.state_changed", state: "awaiting_user_input"}, {kind: "conversation.finished", state: "awaiting_user_input"}}
	seen := map[string]bool{}
	for _, w := range want {
		got := <-e.news
		if got.kind != w.kind || got.state != w.state || got.conversation != id || seen[got.id] {
			t.Errorf("got %+v, want %+v", got, w)
		}
		seen[got.id] = true
	}
	if _, err := b.client.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := <-e.news; got.kind != "conversation.state_changed" || got.state != "stopped" {
		t.Errorf("%+v", got)
	}
	page, err := b.client.WebhookDeliveries(t.Context(), made.ID, 0, 2)
	if err != nil || len(page.Results) != 2 || page.Next == nil || page.Results[1].State != "delivered" || *page.Results[1].ConversationID != id {
		t.Errorf("%+v %v", page, err)
	}
	status, metrics, _ := b.raw("GET", "/metrics", "")
	if status != 200 || !strings.Contains(metrics, "deckhand_webhook_delivered_total") {
		t.Errorf("%d, and no count of deliveries", status)
	}
	if strings.Contains(b.logs.String(), strings.TrimPrefix(made.Secret, "whsec_")) {
		t.Error("the log shows the secret")
	}
}

// What happened before a kill -9 is told after the next start: nothing is lost
// between the append and the delivery.
func TestKilledServerTellsLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, cmd := spawn(t, dir)
	b.demo("scripted/demo")
	hole, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	made := b.hook("http://"+hole.Addr().String(), "created", "finished")
	id := b.create("hello")
	conn, err := hole.Accept() // the first delivery is under way
	if err != nil {
		t.Fatal(err)
	}
	b.follow(id, 0, agentIs("awaiting_user_input"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	conn.Close()
	e := &ear{secret: func() string { return made.Secret }}
	listen(t, e, hole) // whoever listened anew could find the port taken
	serve(t, dir)
	for _, kind := range []string{"conversation.created", "conversation.finished"} {
		if got := <-e.news; got.kind != kind || got.conversation != id {
			t.Errorf("got %+v, want %s", got, kind)
		}
	}
}

// A server that others can reach does not let users reach into its own network.
func TestPublicServerTellsNoPrivateAddress(t *testing.T) {
	t.Parallel()
	e := &ear{}
	url := listen(t, e, nil)
	b := serve(t, "", "--addr", "0.0.0.0:0", "--behind-proxy")
	made := b.hook(url)
	if _, err := b.client.TestWebhook(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	d := b.tried(made.ID)
	if d.State != "failed" || d.Error == nil || !strings.Contains(*d.Error, "--allow-private") {
		t.Errorf("%+v", d)
	}
	if len(e.news) > 0 {
		t.Error("it was dialled")
	}
}

// tried waits for the first attempt of the newest delivery. The server gives no
// other sign of it than the delivery itself.
func (b *box) tried(webhook string) api.WebhookDelivery {
	b.t.Helper()
	for {
		page, err := b.client.WebhookDeliveries(b.t.Context(), webhook, 0, 1)
		if err != nil || len(page.Results) != 1 {
			b.t.Fatal(page, err)
		}
		if page.Results[0].Attempts > 0 {
			return page.Results[0]
		}
	}
}

func TestWebhooksOfAnotherUser(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	code, key, errs := command(t, "key", "create", "--user", "bob", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	bob := &box{t: t, client: client.New(b.base, strings.TrimSpace(key))}
	var his api.NewWebhook
	made := make(chan struct{})
	e := &ear{secret: func() string { <-made; return his.Secret }}
	his = bob.hook(listen(t, e, nil))
	close(made)
	if _, err := b.client.Webhook(t.Context(), his.ID); !client.IsNotFound(err) {
		t.Errorf("the admin sees it: %v", err)
	}
	b.follow(b.create("hello"), 0, agentIs("awaiting_user_input"))
	// Whatever admin's conversation had brought would have come before this.
	if _, err := bob.client.TestWebhook(t.Context(), his.ID); err != nil {
		t.Fatal(err)
	}
	if got := <-e.news; got.kind != "webhook.test" {
		t.Errorf("%+v", got)
	}
}
