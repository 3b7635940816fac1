package httpapi

import (
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/session"
)

// spent has a conversation of a user's spend something, and reserve something.
func (r *rig) spent(user string, month session.Month, spent, reserved session.Money) {
	r.t.Helper()
	st := session.State{ID: session.NewID()}.Apply(session.Event{Number: 1, Payload: session.Created{Owner: user}})
	err := r.log.Append(r.t.Context(), session.Batch{ID: st.ID, Events: []session.Event{{Number: 1, Payload: session.Created{Owner: user}}}, Row: st.Row(),
		Charge: session.Charge{Month: month, Spent: spent, Reserves: true, Reserved: reserved}})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Account.Usage.Limit = 20e9 }})
	now := session.MonthOf(time.Now())
	r.spent("ada", now, 1.25e9, 0.5e9)
	r.spent("ada", now, 0.25e9, 0.25e9)
	r.spent("ada", now.Add(-3), 4e9, 0)
	r.spent("ada", now.Add(-12), 99e9, 0) // too long ago
	r.spent("bob", now, 7e9, 0)
	r.as("ada", "GET", "/api/usage", "").want(t, 200, `"spent":1.5,"reserved":0.75,"limit":20,"months":[{`)
	ada := client.New(r.base, r.keys["ada"])
	defer ada.HTTP.CloseIdleConnections()
	got, err := ada.Usage(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Month != string(now) || got.Spent != 1.5 || got.Reserved != 0.75 || got.Limit == nil || *got.Limit != 20 || len(got.Months) != 12 {
		t.Errorf("got %+v", got)
	}
	for i, m := range got.Months {
		want := api.UsageMonth{Month: string(now.Add(-i)), Spent: map[int]float64{0: 1.5, 3: 4}[i]}
		if m != want {
			t.Errorf("month %d is %+v, want %+v", i, m, want)
		}
	}
	if own, err := ada.Usage(t.Context(), "ada"); err != nil || own.Spent != 1.5 {
		t.Errorf("asked by name: %+v, %v", own, err)
	}
}

func TestUsageOfOthers(t *testing.T) {
	r := newRig(t)
	r.spent("bob", session.MonthOf(time.Now()), 7e9, 0)
	r.as("admin", "GET", "/api/usage?user=bob", "").want(t, 200, `"spent":7,`, `"limit":null`)
	r.as("admin", "GET", "/api/usage", "").want(t, 200, `"spent":0,`)
	r.as("admin", "GET", "/api/usage?user=nobody", "").want(t, 404)
	for _, user := range []string{"bob", "nobody"} { // the answer does not tell who there is
		r.as("ada", "GET", "/api/usage?user="+user, "").want(t, 403, api.CodeForbidden)
	}
}

// A limit that cannot be kept is not promised.
func TestUserLimitNeedsAPrice(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Account.Usage.Limit = 20e9 }})
	r.do("POST", "/api/settings", `{"llm_model":"`+unpriced+`","llm_api_key":"k"}`).want(t, 200)
	r.do("POST", "/api/conversations", `{}`).want(t, 400, api.CodePriceUnknown)
	r.do("POST", "/api/settings", `{"llm_model":"`+priced+`"}`).want(t, 200)
	r.do("POST", "/api/conversations", `{}`).want(t, 200)
}
