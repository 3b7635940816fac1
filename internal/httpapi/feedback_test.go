package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/feedback/feedbacktest"
	"deckhand/internal/httpapi/legacy"
)

func withFeedback() tune {
	return tune{config: func(c *Config) { c.Legacy.Feedback = &feedbacktest.Memory{} }}
}

// What a front end sends is kept for the operator only.
func TestFeedback(t *testing.T) {
	r := newRig(t, withFeedback())
	r.settle("ada", "bob")
	id := r.create(`{"initial_user_msg":"x"}`)
	to := "/api/conversations/" + id + "/submit-feedback"
	first := decoded[api.FeedbackStored](t, r.do("POST", to, `{"version":"1.0","email":"ada@example.org","token":"`+canary+`","polarity":"negative","permissions":"public","trajectory":[{"x":1}]}`).want(t, 200))
	second := decoded[api.FeedbackStored](t, r.do("POST", to, `{"polarity":"positive"}`).want(t, 200))
	if first.StatusCode != 200 || first.Body.Message == "" || first.Body.FeedbackID == "" || first.Body.FeedbackID == second.Body.FeedbackID {
		t.Errorf("%+v, %+v", first, second)
	}
	rate(t, r, id, `"event_id":2,"rating":4,"reason":"quick","metadata":{"source":"likert-scale"}`)
	a := r.as("admin", "GET", "/api/feedback", "").want(t, 200)
	all := decoded[api.FeedbackPage](t, a).Feedback
	if len(all) != 3 || all[2].Polarity != "negative" || all[2].Permissions != "public" || all[2].Email != "ada@example.org" || all[2].Version != "1.0" || all[2].User != "ada" ||
		all[2].ConversationID != id || all[2].Rating != nil || all[1].Permissions != "private" || *all[0].Rating != 4 || *all[0].EventID != 2 || string(all[0].Metadata) != `{"source":"likert-scale"}` {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(a.body, canary) {
		t.Errorf("an unknown field was kept: %s", a.body)
	}
	page := decoded[api.FeedbackPage](t, r.as("admin", "GET", "/api/feedback?limit=2", "").want(t, 200))
	rest := decoded[api.FeedbackPage](t, r.as("admin", "GET", "/api/feedback?limit=2&before="+strconv.FormatInt(*page.Next, 10), "").want(t, 200))
	if len(page.Feedback) != 2 || len(rest.Feedback) != 1 || rest.Next != nil || strconv.FormatInt(rest.Feedback[0].ID, 10) != first.Body.FeedbackID {
		t.Errorf("%+v, %+v", page, rest)
	}
	r.do("GET", "/api/feedback", "").want(t, http.StatusForbidden)

	r.as("bob", "POST", to, `{"polarity":"positive"}`).want(t, 404)
	for body, field := range map[string]string{`{}`: "polarity", `{"polarity":"great"}`: "polarity", `{"polarity":"positive","permissions":"all"}`: "permissions", `{"polarity":"positive","email":5}`: "email"} {
		r.do("POST", to, body).want(t, 422, `["body","`+field+`"]`)
	}
	r.do("DELETE", "/api/conversations/"+id, "").want(t, 200)
	r.as("admin", "GET", "/api/feedback", "").want(t, 200, `{"feedback":[],"next":null}`)
}

func rate(t *testing.T, r *rig, id, fields string) {
	t.Helper()
	r.do("POST", "/feedback/conversation", `{"conversation_id":"`+id+`",`+fields+`}`).want(t, 200, `"status":"success"`)
}

// Stars are shown again beside the events that got them.
func TestRatings(t *testing.T) {
	r := newRig(t, withFeedback())
	r.settle("ada", "bob")
	id := r.create(`{"initial_user_msg":"x"}`)
	batch, one := "/feedback/conversation/"+id+"/batch", "/feedback/conversation/"+id+"/2"
	if a := r.do("GET", batch, "").want(t, 200); a.body != `{}` {
		t.Errorf("%s", a.body)
	}
	if a := r.do("GET", one, "").want(t, 200); a.body != `{"exists":false}` {
		t.Errorf("%s", a.body)
	}
	rate(t, r, id, `"event_id":2,"rating":1,"reason":"slow"`)
	rate(t, r, id, `"event_id":2,"rating":5,"metadata":{"a":1}`)
	rate(t, r, id, `"event_id":1,"rating":3,"reason":null`)
	rate(t, r, id, `"rating":2`)
	if a := r.do("GET", batch, "").want(t, 200); a.body != `{"1":{"exists":true,"rating":3},"2":{"exists":true,"rating":5,"metadata":{"a":1}}}` {
		t.Errorf("%s", a.body)
	}
	r.do("GET", one, "").want(t, 200, `{"exists":true,"rating":5,`)
	r.do("GET", "/feedback/conversation/"+id+"/0", "").want(t, 200, `"rating":2`)
	r.as("bob", "GET", batch, "").want(t, 404)
	r.as("bob", "GET", one, "").want(t, 404)
	r.as("bob", "POST", "/feedback/conversation", `{"conversation_id":"`+id+`","rating":1}`).want(t, 404)
	for fields, field := range map[string]string{
		`"rating":0`: "rating", `"rating":6`: "rating", `"event_id":1`: "rating", `"rating":3,"event_id":-1`: "event_id", `"rating":3,"event_id":999`: "event_id",
		`"rating":3,"metadata":{"x":"` + strings.Repeat("x", legacy.MaxMetadata) + `"}`: "metadata", `"rating":3,"reason":"` + strings.Repeat("x", 10_001) + `"`: "reason",
	} {
		r.do("POST", "/feedback/conversation", `{"conversation_id":"`+id+`",`+fields+`}`).want(t, 422, `["body","`+field+`"]`)
	}
}

// A server without a place for it says so, and everything else works.
func TestNoFeedback(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	r.do("POST", "/api/conversations/"+id+"/submit-feedback", `{"polarity":"positive"}`).want(t, 404, "not enabled")
	r.do("POST", "/feedback/conversation", `{"conversation_id":"`+id+`","rating":1}`).want(t, 404, "not enabled")
	r.as("admin", "GET", "/api/feedback", "").want(t, 404, "not enabled")
	r.do("DELETE", "/api/conversations/"+id, "").want(t, 200)
}
