package httpapi

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/notify"
	"deckhand/internal/store/sqlite"
)

// withWebhooks is a rig whose webhooks are in a database of their own.
func withWebhooks(t *testing.T) (*rig, *notify.Records) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "deckhand.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, name := range []string{"admin", "ada", "bob"} {
		if err := db.CreateUser(t.Context(), access.User{Name: name, CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	store := db.Webhooks()
	return newRig(t, tune{config: func(c *Config) {
		c.Hooks.Webhooks = &notify.Hooks{Store: store, Deliveries: store, Seal: c.Retries.Seal, Redact: c.Account.Redact}
	}}), store
}

const hookURL = "https://hooks.example.org/a?token=hidden"

func TestWebhookLife(t *testing.T) {
	r, _ := withWebhooks(t)
	made := decoded[api.NewWebhook](t, r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201))
	if !strings.HasPrefix(made.Secret, "whsec_") || made.URL != hookURL || !made.Enabled || made.DisabledReason != nil || made.FailingSince != nil ||
		strings.Join(made.Events, " ") != "created state_changed finished needs_approval" {
		t.Errorf("%+v", made)
	}
	at := "/api/webhooks/" + made.ID
	if got := r.as("ada", "GET", at, "").want(t, 200); strings.Contains(got.body, "whsec_") || strings.Contains(got.body, `"secret"`) {
		t.Errorf("the secret is shown a second time: %s", got.body)
	}
	patched := decoded[api.PatchedWebhook](t, r.as("ada", "PATCH", at, `{"events":["finished","finished"],"description":"chat","enabled":false}`).want(t, 200))
	if patched.Secret != nil || patched.Enabled || patched.Description != "chat" || strings.Join(patched.Events, " ") != "finished" || patched.URL != hookURL {
		t.Errorf("%+v", patched)
	}
	rotated := decoded[api.PatchedWebhook](t, r.as("ada", "PATCH", at, `{"rotate_secret":true}`).want(t, 200))
	if rotated.Secret == nil || *rotated.Secret == made.Secret || rotated.Description != "chat" || !rotated.UpdatedAt.After(patched.UpdatedAt) {
		t.Errorf("%+v", rotated)
	}
	if list := decoded[[]api.Webhook](t, r.as("ada", "GET", "/api/webhooks", "").want(t, 200)); len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("%+v", list)
	}
	r.as("ada", "DELETE", at, "").want(t, 200)
	r.as("ada", "GET", at, "").want(t, 404)
	r.as("ada", "DELETE", at, "").want(t, 404)
	r.as("ada", "GET", "/api/webhooks", "").want(t, 200, "[]")
	for _, hidden := range []string{strings.TrimPrefix(made.Secret, "whsec_"), "token=hidden"} {
		if strings.Contains(r.logs.String(), hidden) {
			t.Errorf("the log shows %s", hidden)
		}
	}
}

func TestWebhookInput(t *testing.T) {
	r, _ := withWebhooks(t)
	for body, part := range map[string]string{
		`{}`:                                `"missing"`,
		`{"url":""}`:                        "not be empty",
		`{"url":7}`:                         "Must be a string",
		`{"url":"ftp://example.org"}`:       "Must be an http or https URL",
		`{"url":"https://a:b@example.org"}`: "Must not contain a user name or password",
		`{"url":"https://e.org/#x"}`:        "Must not contain a fragment",
		`{"url":"` + hookURL + `","events":["other"]}`:                               "Must be any of",
		`{"url":"` + hookURL + `","events":[]}`:                                      "Must contain at least one event",
		`{"url":"` + hookURL + `","events":null}`:                                    "Must not be null",
		`{"url":"` + hookURL + `","secret":"mine"}`:                                  "extra_forbidden",
		`{"url":"` + hookURL + `","description":"` + strings.Repeat("x", 201) + `"}`: "at most 200",
	} {
		a := r.as("ada", "POST", "/api/webhooks", body).want(t, 422, part)
		if strings.Contains(a.body, "hidden") || strings.Contains(a.body, "a:b") {
			t.Errorf("the answer repeats the address: %s", a.body)
		}
	}
	made := decoded[api.NewWebhook](t, r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201))
	for body, part := range map[string]string{
		`{"url":"nowhere"}`:      "Must be an http or https URL",
		`{"events":["x"]}`:       "Must be any of",
		`{"enabled":null}`:       "Must not be null",
		`{"rotate_secret":"no"}`: "true or false",
	} {
		r.as("ada", "PATCH", "/api/webhooks/"+made.ID, body).want(t, 422, part)
	}
}

func TestWebhooksAreBounded(t *testing.T) {
	r, _ := withWebhooks(t)
	for range notify.MaxWebhooks {
		r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201)
	}
	r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 409, api.CodeConflict, "20 webhooks")
	r.as("bob", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201)
}

func TestWebhookDeliveries(t *testing.T) {
	r, store := withWebhooks(t)
	made := decoded[api.NewWebhook](t, r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201))
	at := "/api/webhooks/" + made.ID
	var ids []string
	for range 3 {
		d := decoded[api.WebhookDelivery](t, r.as("ada", "POST", at+"/test", "").want(t, 202))
		if d.Type != "webhook.test" || d.State != "waiting" || d.Attempts != 0 || d.NextAttemptAt == nil || d.LastAttemptAt != nil || d.ConversationID != nil || d.StatusCode != nil {
			t.Errorf("%+v", d)
		}
		ids = append(ids, d.ID)
	}
	w, d, _, err := store.Next(t.Context(), made.ID, time.Now())
	if err != nil || d.ID != ids[0] {
		t.Fatal(d.ID, err)
	}
	d.State, d.Attempts, d.NextAt, d.LastAt, d.Status, d.Error, d.Took = notify.GivenUp, 1, time.Time{}, time.Now(), 500, "the receiver answered 500", 3*time.Millisecond
	if err := store.Settle(t.Context(), w, d); err != nil {
		t.Fatal(err)
	}
	page := decoded[api.WebhookDeliveryPage](t, r.as("ada", "GET", at+"/deliveries?limit=2", "").want(t, 200))
	if len(page.Results) != 2 || page.Results[0].ID != ids[2] || page.Next == nil {
		t.Fatalf("%+v", page)
	}
	page = decoded[api.WebhookDeliveryPage](t, r.as("ada", "GET", fmt.Sprintf("%s/deliveries?limit=2&before=%d", at, *page.Next), "").want(t, 200))
	if len(page.Results) != 1 || page.Next != nil {
		t.Fatalf("%+v", page)
	}
	if got := page.Results[0]; got.State != "failed" || got.StatusCode == nil || *got.StatusCode != 500 || got.Error == nil || got.TookMS == nil || *got.TookMS != 3 || got.NextAttemptAt != nil {
		t.Errorf("%+v", got)
	}
	again := decoded[api.WebhookDelivery](t, r.as("ada", "POST", at+"/deliveries/"+ids[0]+"/retry", "").want(t, 202))
	if again.ID != ids[0] || again.State != "waiting" || again.Attempts != 0 {
		t.Errorf("%+v", again)
	}
	r.as("ada", "POST", at+"/deliveries/none/retry", "").want(t, 404)
	r.as("ada", "GET", at+"/deliveries?limit=101", "").want(t, 422)
	r.as("ada", "PATCH", at, `{"enabled":false}`).want(t, 200)
	r.as("ada", "POST", at+"/test", "").want(t, 409, "Enable it first")
	r.as("ada", "POST", at+"/deliveries/"+ids[0]+"/retry", "").want(t, 409)
}

// Users do not see each other's webhooks, admins included.
func TestWebhooksOfOthersAreInvisible(t *testing.T) {
	r, _ := withWebhooks(t)
	made := decoded[api.NewWebhook](t, r.as("ada", "POST", "/api/webhooks", `{"url":"`+hookURL+`"}`).want(t, 201))
	at := "/api/webhooks/" + made.ID
	test := decoded[api.WebhookDelivery](t, r.as("ada", "POST", at+"/test", "").want(t, 202))
	for _, user := range []string{"bob", "admin"} {
		r.as(user, "GET", "/api/webhooks", "").want(t, 200, "[]")
		r.as(user, "GET", at, "").want(t, 404)
		r.as(user, "PATCH", at, `{"enabled":false}`).want(t, 404)
		r.as(user, "DELETE", at, "").want(t, 404)
		r.as(user, "POST", at+"/test", "").want(t, 404)
		r.as(user, "GET", at+"/deliveries", "").want(t, 404)
		r.as(user, "POST", at+"/deliveries/"+test.ID+"/retry", "").want(t, 404)
	}
	if got := decoded[api.Webhook](t, r.as("ada", "GET", at, "").want(t, 200)); !got.Enabled || got.Waiting != 1 {
		t.Errorf("%+v", got)
	}
}

// The same request sent again makes no second webhook, and shows the same secret.
func TestWebhookIsMadeOnce(t *testing.T) {
	r, _ := withWebhooks(t)
	body := `{"url":"` + hookURL + `"}`
	first := r.do("POST", "/api/webhooks", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
	second := r.do("POST", "/api/webhooks", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
	if first.body != second.body {
		t.Errorf("%s\n%s", first.body, second.body)
	}
}
