package httpapi

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
)

func key(k string) []string { return []string{"Idempotency-Key", k} }

func TestSameRequestTwice(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	r.create(`{"conversation_id":"` + open + `"}`)
	for _, c := range []struct {
		path, body string
		status     int
		effect     func() int
	}{
		{toCreate, `{"initial_user_msg":"hello"}`, 200, func() int { return len(r.rows("ada")) }},
		{toKeys, `{"name":"ci"}`, 201, func() int { keys, _ := r.gate.List(t.Context(), "ada"); return len(keys) }},
		{toOpen + "/message", `{"message":"hello"}`, 200, func() int { return len(said(r.events(open))) }},
		{toOpen + "/events", `{"action":"message","args":{"content":"hello"}}`, 200, func() int { return len(said(r.events(open))) }},
		{toSettings, `{"language":"en","nonsense":1}`, 200, func() int { rec, _ := r.stored.LoadSettings(t.Context(), "ada"); return int(rec.Version) }},
		{toOpen + "/stop", ``, 200, func() int { return len(r.events(open)) }},
		{toOpen + "/start", `{}`, 200, func() int { return len(r.events(open)) }},
	} {
		t.Run(c.path, func(t *testing.T) {
			r := *r
			r.t = t
			before := c.effect()
			k := key("k " + c.path)
			first := r.do("POST", c.path, c.body, k...).want(t, c.status)
			once := c.effect()
			if once == before {
				t.Fatal("the request did nothing")
			}
			again := r.do("POST", c.path, c.body, k...).want(t, c.status)
			if first.body != again.body || first.header.Get("Content-Type") != again.header.Get("Content-Type") {
				t.Errorf("first %s, then %s", first.body, again.body)
			}
			if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
				t.Error("a repeated answer is not marked as one")
			}
			if c.effect() != once {
				t.Error("done twice")
			}
			mismatch := []string{"header", "Idempotency-Key", "another request"}
			r.do("POST", c.path, `{"title":"another"}`, k...).want(t, 422, mismatch...)
			r.do("POST", c.path+"?x=1", c.body, k...).want(t, 422, mismatch...)
			if c.effect() != once {
				t.Error("a mismatch did something")
			}
		})
	}
	// Keys belong to a user: another user's request under the same key is another request.
	r.do("POST", toCreate, `{"initial_user_msg":"mine"}`, key("shared")...).want(t, 200)
	a := r.do("POST", toCreate, `{"initial_user_msg":"theirs"}`, append(key("shared"), "X-Session-API-Key", r.keys["bob"])...).want(t, 200)
	if a.header.Get("Idempotency-Replayed") != "" || len(r.rows("bob")) != 1 {
		t.Errorf("bob got ada's answer: %s", a.body)
	}
	for _, kept := range r.answers.all() {
		if strings.Contains(string(kept.Body), "dh_") || strings.Contains(string(kept.Body), "conversation_id") {
			t.Errorf("an answer is kept in clear: %q", kept.Body)
		}
	}
}

// Requests that arrive together wait for the first and get its answer. The
// first is held back, after its effect, until all of them have arrived.
func TestSameRequestAtOnce(t *testing.T) {
	const n = 30
	for _, c := range []struct {
		path, body string
		effect     func(r *rig) int
	}{
		{toCreate, `{"initial_user_msg":"hello"}`, func(r *rig) int { return len(r.rows("ada")) }},
		{toKeys, `{"name":"ci"}`, func(r *rig) int { keys, _ := r.gate.List(t.Context(), "ada"); return len(keys) }},
		{toOpen + "/message", `{"message":"hello"}`, func(r *rig) int { return len(said(r.events(open))) }},
		{toOpen + "/events", `{"action":"message","args":{"content":"hello"}}`, func(r *rig) int { return len(said(r.events(open))) }},
	} {
		var arrived atomic.Int64
		all := make(chan struct{})
		r := newRig(t, tune{config: func(c *Config) {
			c.Telemetry.Trace = func(ctx context.Context, _ string) (context.Context, func(int)) {
				if arrived.Add(1) == n {
					close(all)
				}
				return ctx, func(int) {}
			}
		}})
		r.settle("ada")
		r.create(`{"conversation_id":"` + open + `"}`)
		arrived.Store(0)
		r.answers.hold = all
		before := c.effect(r)
		answers := make(chan answer, n)
		for range n {
			go func() { answers <- r.do("POST", c.path, c.body, key("at once")...) }()
		}
		first := <-answers
		for range n - 1 {
			if a := <-answers; a.body != first.body || a.status != first.status {
				t.Errorf("%s: %d %s and %d %s", c.path, first.status, first.body, a.status, a.body)
			}
		}
		if c.effect(r) != before+1 {
			t.Errorf("%s: done %d times", c.path, c.effect(r)-before)
		}
	}
}

// A server that dies between the effect and the stored answer does nothing
// twice when the request comes again.
func TestSameRequestAfterACrash(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.create(`{"conversation_id":"` + open + `"}`)
	for _, c := range []struct {
		path, body string
		effect     func() int
	}{
		{toCreate, `{"initial_user_msg":"hello"}`, func() int { return len(r.rows("ada")) }},
		{toCreate, `{"conversation_id":"named","initial_user_msg":"hello"}`, func() int { return len(r.rows("ada")) }},
		{toOpen + "/message", `{"message":"hello"}`, func() int { return len(said(r.events(open))) }},
		{toOpen + "/events", `{"action":"message","args":{"content":"hello"}}`, func() int { return len(said(r.events(open))) }},
	} {
		before, k := c.effect(), key("crash "+c.body)
		r.answers.fail(1)
		r.do("POST", c.path, c.body, k...).want(t, 500, api.CodeInternal)
		if c.effect() != before+1 {
			t.Fatalf("%s: the effect is not there", c.path)
		}
		r.do("POST", c.path, c.body, k...).want(t, 200)
		r.do("POST", c.path, c.body, k...).want(t, 200)
		if c.effect() != before+1 {
			t.Errorf("%s %s: done %d times", c.path, c.body, c.effect()-before)
		}
	}
}

// What was refused is not remembered: the same request may succeed later.
func TestRefusalIsNotKept(t *testing.T) {
	r := newRig(t)
	r.do("POST", toCreate, `{}`, key("k")...).want(t, 400, api.CodeSettingsNotFound)
	r.do("POST", toCreate, `{"x":1}`, key("k")...).want(t, 422)
	if n := len(r.answers.all()); n != 0 {
		t.Errorf("%d answers are kept", n)
	}
	r.settle("ada")
	r.do("POST", toCreate, `{}`, key("k")...).want(t, 200)
}

func TestKeysOverHTTP(t *testing.T) {
	r := newRig(t)
	made := decoded[api.NewKey](t, r.do("POST", toKeys, `{"name":"ci","expires":"720h"}`).want(t, 201))
	if made.User != "ada" || made.Name != "ci" || made.Admin || made.ExpiresAt == nil || !strings.HasPrefix(made.Secret, "dh_") {
		t.Errorf("%+v", made)
	}
	r.do("GET", "/api/me", "", "X-Session-API-Key", made.Secret).want(t, 200, "ada")
	mine := r.do("GET", toKeys, "").want(t, 200, made.ID)
	if strings.Contains(mine.body, made.Secret) || strings.Contains(mine.body, `"bob"`) || strings.Contains(mine.body, "hash") {
		t.Errorf("%s", mine.body)
	}
	current := func(headers ...string) (ids []string) {
		for _, k := range decoded[[]api.Key](t, r.do("GET", toKeys, "", headers...).want(t, 200)) {
			if k.Current {
				ids = append(ids, k.ID)
			}
		}
		return ids
	}
	if got := current("X-Session-API-Key", made.Secret); !slices.Equal(got, []string{made.ID}) {
		t.Errorf("with the new key: %v", got)
	}
	if got := current("X-Session-API-Key", "", "Cookie", r.cookie("ada")); !slices.Equal(got, current()) || len(got) != 1 {
		t.Errorf("logged in with the first key: %v", got)
	}
	r.as("admin", "GET", toKeys, "").want(t, 200, `"bob"`, `"ada"`, `"admin"`)
	r.as("bob", "DELETE", toKeys+"/"+made.ID, "").want(t, 404)
	r.do("GET", "/api/me", "", "X-Session-API-Key", made.Secret).want(t, 200)
	r.do("DELETE", toKeys+"/"+made.ID, "").want(t, 200, `"revoked_at":"`)
	r.do("GET", "/api/me", "", "X-Session-API-Key", made.Secret).want(t, 401)
	theirs := decoded[api.NewKey](t, r.as("admin", "POST", toKeys, `{"user":"carol"}`).want(t, 201))
	r.do("GET", "/api/me", "", "X-Session-API-Key", theirs.Secret).want(t, 200, "carol")
	for _, k := range decoded[[]api.Key](t, r.as("admin", "GET", toKeys, "")) {
		if k.Admin {
			r.as("admin", "DELETE", toKeys+"/"+k.ID, "").want(t, 409, "last usable admin key")
		}
	}
	r.as("admin", "POST", toKeys, `{"user":"Not A Name"}`).want(t, 422, "user name")
	r.as("admin", "POST", toKeys, `{"user":"bob","admin":true}`).want(t, 409, "not an administrator")
}
