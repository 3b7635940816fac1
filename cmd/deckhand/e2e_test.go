package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
)

// The walk: HTTP, log, loop, log, stream, client.
func TestWalk(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	if _, err := b.client.Settings(ctx); !client.IsNotFound(err) {
		t.Fatalf("settings before the first store: %v", err)
	}
	if _, err := b.client.Create(ctx, api.CreateConversation{}); codeOf(err) != api.CodeSettingsNotFound {
		t.Fatalf("create without settings: %v", err)
	}
	b.demo("scripted/demo")
	made, err := b.client.Create(ctx, api.CreateConversation{InitialUserMsg: api.Some("Say hello")})
	if err != nil {
		t.Fatal(err)
	}
	if made.Status != "ok" || *made.ConversationStatus != "STARTING" || made.Message != nil || len(made.ConversationID) != 32 {
		t.Fatalf("%+v", made)
	}
	id := made.ConversationID

	seen := b.follow(id, 0, agentIs("awaiting_user_input"))
	if !inOrder(seen) {
		t.Fatalf("out of order:\n%s", describe(seen))
	}
	if text := describe(seen); !strings.Contains(text, `You said: \"Say hello\"`) {
		t.Fatalf("no answer:\n%s", text)
	}

	if err := b.client.Say(ctx, id, "And again", "key-1"); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Say(ctx, id, "And again", "key-1"); err != nil {
		t.Fatal(err)
	}
	last := seen[len(seen)-1].ID
	more := b.follow(id, last, agentIs("awaiting_user_input"))
	if n := strings.Count(describe(more), `"source":"user","message":"And again"`); n != 1 {
		t.Fatalf("said %d times:\n%s", n, describe(more))
	}

	got, err := b.client.Conversation(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != "RUNNING" || *got.RuntimeStatus != "STATUS$READY" || got.Title != "Say hello" || got.AgentState != "awaiting_user_input" {
		t.Fatalf("%+v", got)
	}
	if err := b.client.Rename(ctx, id, "  Greetings  "); err != nil {
		t.Fatal(err)
	}
	stopped, err := b.client.Stop(ctx, id)
	if err != nil || *stopped.ConversationStatus != "STOPPED" || *stopped.Message != "Conversation stopped successfully" {
		t.Fatalf("%+v %v", stopped, err)
	}
	if again, _ := b.client.Stop(ctx, id); *again.Message != "Conversation was not running" {
		t.Fatalf("%+v", again)
	}
	if started, err := b.client.Start(ctx, id); err != nil || *started.ConversationStatus != "STARTING" {
		t.Fatalf("%+v %v", started, err)
	}
	page, err := b.client.Conversations(ctx, url.Values{"query": {"greet"}})
	if err != nil || len(page.Results) != 1 || page.Results[0].Title != "Greetings" {
		t.Fatalf("%+v %v", page, err)
	}
	if err := b.client.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.Conversation(ctx, id); !client.IsNotFound(err) {
		t.Fatalf("after delete: %v", err)
	}
}

func codeOf(err error) string {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func inOrder(items []client.LegacyItem) bool {
	return slices.IsSortedFunc(items, func(a, b client.LegacyItem) int {
		if a.ID == b.ID {
			return 1 // twice is not in order
		}
		return int(a.ID - b.ID)
	})
}

func TestEventsPaging(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	seen := b.follow(id, 0, agentIs("awaiting_user_input"))
	var want []int64
	for _, it := range seen {
		if it.Event != nil {
			want = append(want, it.ID)
		}
	}
	read := func(query string) (ids []int64, more bool) {
		q, _ := url.ParseQuery(query)
		page, err := b.client.LegacyEvents(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Events {
			var e api.LegacyEvent
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
		return ids, page.HasMore
	}
	var up []int64
	for next, more := int64(0), true; more; {
		var part []int64
		part, more = read("limit=2&start_id=" + url.QueryEscape(itoa(next)))
		up = append(up, part...)
		next = up[len(up)-1] + 1
	}
	if !slices.Equal(up, want) {
		t.Errorf("paged up: %v, want %v", up, want)
	}
	down, more := read("reverse=true&limit=100")
	slices.Reverse(down)
	if !slices.Equal(down, want) || more {
		t.Errorf("paged down: %v (more %v), want %v", down, more, want)
	}
	if part, more := read("limit=0"); len(part) != 0 || !more {
		t.Errorf("limit 0: %v %v", part, more)
	}
	if part, _ := read("end_id=" + itoa(want[1])); !slices.Equal(part, want[:2]) {
		t.Errorf("end_id: %v", part)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

// A reader who watches while the server is restarted sees every event once.
func TestFollowAcrossRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := serve(t, dir)
	b.demo("scripted/slow")
	id := b.create("hello")
	addr := strings.TrimPrefix(b.base, "http://")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	restarted := false
	var seen []client.LegacyItem
	for it, err := range b.client.FollowLegacy(ctx, id, 0) {
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(seen))
		}
		if it.Delta != nil && !restarted { // in the middle of the answer
			restarted = true
			b.stop()
			b2 := serve(t, dir, "--addr", addr)
			b2.demo("scripted/demo")
		}
		if it.ID > 0 {
			seen = append(seen, it)
		}
		if agentIs("awaiting_user_input")(it) {
			break
		}
	}
	if !restarted || !inOrder(seen) {
		t.Fatalf("restarted %v:\n%s", restarted, describe(seen))
	}
	if n := strings.Count(describe(seen), `"source":"agent","message":"[scripted`); n != 1 {
		t.Fatalf("%d answers:\n%s", n, describe(seen))
	}
}

// What was acknowledged before a kill -9 is there afterwards.
func TestKillNine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := map[string]bool{}
	for round := range 5 {
		b, cmd := spawn(t, dir)
		if round == 0 {
			b.demo("scripted/demo")
		}
		ids := make(chan string)
		for range 8 {
			go func() {
				for {
					res, err := b.client.Create(context.Background(), api.CreateConversation{InitialUserMsg: api.Some("hello")})
					if err != nil {
						ids <- ""
						return
					}
					ids <- res.ConversationID
				}
			}()
		}
		for ended := 0; ended < 8; {
			id := <-ids
			if id == "" {
				ended++
				continue
			}
			made[id] = true
			if len(made)%50 == 0 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
	}
	b := serve(t, dir)
	for id := range made {
		if _, err := b.client.Conversation(t.Context(), id); err != nil {
			t.Fatalf("acknowledged and lost: %s: %v", id, err)
		}
	}
	// And all of them get their answer, begun or not.
	for id := range made {
		b.follow(id, 0, agentIs("awaiting_user_input"))
	}
}

func TestFailedStartIsVisible(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{LLMModel: api.Some("acme/model-1"), LLMAPIKey: api.Some("sk-something")}); err != nil {
		t.Fatal(err)
	}
	id := b.create("hello")
	seen := b.follow(id, 0, agentIs("error"))
	if !strings.Contains(describe(seen), "unknown model") {
		t.Errorf("the stream does not say why:\n%s", describe(seen))
	}
	got, err := b.client.Conversation(ctx, id)
	if err != nil || got.Status != "STOPPED" || got.Reason == nil || !strings.Contains(*got.Reason, "acme/model-1") {
		t.Fatalf("%+v %v", got, err)
	}
	// After the settings were mended, the message that waited is answered.
	b.demo("scripted/demo")
	if _, err := b.client.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	b.follow(id, seen[len(seen)-1].ID, agentIs("awaiting_user_input"))
}

func TestUsersSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	b.demo("scripted/demo")
	id := b.create("a secret plan")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	code, key, errs := command(t, "key", "create", "--user", "bob", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	bob := client.New(b.base, strings.TrimSpace(key))
	if _, err := bob.Settings(ctx); !client.IsNotFound(err) {
		t.Errorf("settings: %v", err)
	}
	if page, err := bob.Conversations(ctx, nil); err != nil || len(page.Results) != 0 {
		t.Errorf("list: %+v %v", page, err)
	}
	if _, err := bob.StoreSettings(ctx, api.SettingsInput{LLMModel: api.Some("scripted/demo")}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"get":    second(bob.Conversation(ctx, id)),
		"events": second(bob.LegacyEvents(ctx, id, nil)),
		"say":    bob.Say(ctx, id, "hi", ""),
		"rename": bob.Rename(ctx, id, "mine"),
		"stop":   second(bob.Stop(ctx, id)),
		"start":  second(bob.Start(ctx, id)),
		"state":  bob.SetState(ctx, id, "paused"),
		"delete": bob.Delete(ctx, id),
	} {
		if !client.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range bob.FollowLegacy(ctx, id, 0) {
		if !client.IsNotFound(err) {
			t.Errorf("follow: %v", err)
		}
	}
	if _, err := bob.Create(ctx, api.CreateConversation{ConversationID: api.Some(id)}); codeOf(err) != api.CodeConversationTaken {
		t.Errorf("taking the id: %v", err)
	}
	if got, _ := b.client.Conversation(ctx, id); got.Title != "a secret plan" || got.Status != "RUNNING" {
		t.Errorf("%+v", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestRevokedKeyEndsStreamsAtOnce(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	b.demo("scripted/demo")
	id := b.create("")
	made, err := b.client.CreateKey(ctx, api.CreateKey{Name: api.Some("laptop")})
	if err != nil {
		t.Fatal(err)
	}
	other := client.New(b.base, made.Secret)
	ended := make(chan error, 1)
	following := make(chan struct{})
	go func() {
		for it, err := range other.FollowLegacy(ctx, id, 0) {
			if err != nil {
				ended <- err
				return
			}
			if agentIs("awaiting_user_input")(it) {
				close(following)
			}
		}
		ended <- nil
	}()
	<-following
	if code, _, errs := command(t, "key", "revoke", made.ID, "--data-dir", b.dir); code != 0 {
		t.Fatal(errs)
	}
	if _, err := other.Conversation(ctx, id); statusOf(err) != http.StatusUnauthorized {
		t.Errorf("after the command returned: %v", err)
	}
	if err := <-ended; statusOf(err) != http.StatusUnauthorized {
		t.Errorf("the stream: %v", err)
	}
}

func statusOf(err error) int {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

func TestLoginLink(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	path, ticket, ok := strings.Cut(strings.TrimPrefix(b.link, b.base), "#")
	if !ok || path != "/login" {
		t.Fatalf("link %q", b.link)
	}
	status, body, header := b.raw("POST", "/api/login", `{"ticket":"`+ticket+`"}`, "X-Session-API-Key", "")
	if status != 200 || !strings.Contains(body, `"admin"`) {
		t.Fatalf("%d %s", status, body)
	}
	cookie := header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("cookie %q", cookie)
	}
	value, _, _ := strings.Cut(cookie, ";")
	if status, body, _ := b.raw("GET", "/", "", "X-Session-API-Key", "", "Cookie", value, "Sec-Fetch-Site", "same-origin"); status != 200 || !strings.Contains(body, `"deckhand-visitor" content="new"`) {
		t.Errorf("home: %d %s", status, body)
	}
	if status, _, _ := b.raw("POST", "/api/logout", "{}", "X-Session-API-Key", "", "Cookie", value, "Origin", "http://evil.test", "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("a foreign page logs out: %d", status)
	}
	if status, _, _ := b.raw("POST", "/api/login", `{"ticket":"`+ticket+`"}`, "X-Session-API-Key", ""); status != 401 {
		t.Errorf("the ticket works twice: %d", status)
	}
}

func TestRotateMasterBesideServer(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{LLMModel: api.Some("scripted/demo"), LLMAPIKey: api.Some("sk-canary-0123456789")}); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(b.dir, "master.key"))
	if code, _, errs := command(t, "key", "rotate-master", "--data-dir", b.dir); code != 0 {
		t.Fatal(errs)
	}
	after, _ := os.ReadFile(filepath.Join(b.dir, "master.key"))
	if string(before) == string(after) {
		t.Fatal("the key is the same")
	}
	code, key, errs := command(t, "key", "create", "--user", "new", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	fresh := client.New(b.base, strings.TrimSpace(key))
	for _, c := range []*client.Client{b.client, fresh} { // an old user and one who gets a data key now
		if _, err := c.StoreSettings(ctx, api.SettingsInput{LLMModel: api.Some("scripted/demo"), SearchAPIKey: api.Some("tvly-canary-987654")}); err != nil {
			t.Fatal(err)
		}
	}
	b.stop()
	b = serve(t, b.dir)
	fresh = client.New(b.base, strings.TrimSpace(key))
	for _, c := range []*client.Client{b.client, fresh} {
		if s, err := c.Settings(ctx); err != nil || !s.SearchAPIKeySet {
			t.Errorf("%+v %v", s, err)
		}
	}
}

func TestRefusesPublicAddress(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:3000", "127.evil.com:3000"} {
		code, out, errs := command(t, "serve", "--addr", addr, "--data-dir", t.TempDir())
		if code == 0 || !strings.Contains(errs, "--behind-proxy") {
			t.Errorf("%s: %d %s%s", addr, code, out, errs)
		}
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	code, _, errs := command(t, "serve", "--addr", "127.0.0.1:0", "--data-dir", b.dir)
	if code == 0 || !strings.Contains(errs, "another deckhand process") {
		t.Errorf("%d %s", code, errs)
	}
}
