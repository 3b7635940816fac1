package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

// pairs is a clock on which two conversations at a time are equally old, so
// that a page can end between them.
func pairs() tune {
	n := 0
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return tune{clock: func() time.Time { n++; return begin.Add(time.Duration(n/2) * time.Second) }}
}

func (r *rig) page(query string) api.ConversationPage {
	r.t.Helper()
	return decoded[api.ConversationPage](r.t, r.do("GET", toCreate+"?"+query, "").want(r.t, 200))
}

// walk reads all pages; between is called after each.
func (r *rig) walk(query string, between func(page int)) []string {
	r.t.Helper()
	var ids []string
	next := ""
	for n := 0; ; n++ {
		p := r.page(query + "&page_id=" + next)
		for _, c := range p.Results {
			ids = append(ids, c.ConversationID)
		}
		if p.NextPageID == nil {
			return ids
		}
		if next = *p.NextPageID; n > 100 {
			r.t.Fatal("the list does not end")
		}
		if between != nil {
			between(n)
		}
	}
}

func TestListIsStable(t *testing.T) {
	for limit := 1; limit <= 5; limit++ {
		r := newRig(t, pairs())
		r.settle("ada", "bob")
		var want []string
		for i := range 13 {
			want = append(want, r.create(fmt.Sprintf(`{"initial_user_msg":"%d"}`, i)))
		}
		slices.Reverse(want)
		slices.SortStableFunc(want, func(a, b string) int { // newest first, ties by id
			at := func(id string) time.Time { row, _ := r.log.Row(t.Context(), session.ID(id)); return row.CreatedAt }
			if c := at(b).Compare(at(a)); c != 0 {
				return c
			}
			return strings.Compare(b, a)
		})
		if got := r.walk(fmt.Sprintf("limit=%d", limit), nil); !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
		// Concurrent creations and deletions shift nothing: all that stays is seen once.
		deleted := map[string]bool{}
		got := r.walk(fmt.Sprintf("limit=%d", limit), func(page int) {
			r.create(`{"initial_user_msg":"new"}`)
			r.as("bob", "POST", toCreate, `{}`).want(t, 200)
			if at := page * limit; at < len(want) { // one that was shown, the cursor's own among them
				victim := want[min(at+limit-1, len(want)-1)]
				r.do("DELETE", toCreate+"/"+victim, "").want(t, 200)
				deleted[victim] = true
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("limit %d, while things happen: %v, want %v (deleted %v)", limit, got, want, deleted)
		}
	}
}

func TestListFilters(t *testing.T) {
	r := newRig(t, pairs())
	r.settle("ada")
	bearer := []string{"X-Session-API-Key", "", "Authorization", "Bearer " + r.keys["ada"]}
	want := map[string][]string{}
	for i := range 8 {
		repo := []string{"team/a", "team/b"}[i%2]
		var header []string
		if i >= 4 {
			header = bearer
		}
		id := r.create(fmt.Sprintf(`{"repository":%q}`, repo), header...)
		want["selected_repository="+repo] = append(want["selected_repository="+repo], id)
		if i >= 4 {
			want["conversation_trigger=openhands_api"] = append(want["conversation_trigger=openhands_api"], id)
		}
		if i%3 == 0 {
			r.do("PATCH", toCreate+"/"+id, fmt.Sprintf(`{"title":"Needle %d in HAY"}`, i)).want(t, 200)
			want["query=hay"] = append(want["query=hay"], id)
			r.do("POST", toCreate+"/"+id+"/stop", "").want(t, 200)
			want["status=STOPPED"] = append(want["status=STOPPED"], id)
		} else {
			want["status=STARTING"] = append(want["status=STARTING"], id)
		}
	}
	for filter, ids := range want {
		got := r.walk(filter+"&limit=1", nil)
		slices.Sort(got)
		slices.Sort(ids)
		if !slices.Equal(got, ids) {
			t.Errorf("%s: %v, want %v", filter, got, ids)
		}
		// Filters come before paging: a page is full while there is more.
		if p := r.page(filter + "&limit=2"); len(p.Results) != 2 || (p.NextPageID == nil) != (len(ids) == 2) {
			t.Errorf("%s: a page of %d", filter, len(p.Results))
		}
	}
	for _, filter := range []string{"query=%25", "query=_", "query=%27", "selected_repository=team", "status=RUNNING", "conversation_trigger=slack"} {
		if p := r.page(filter); len(p.Results) != 0 || p.NextPageID != nil {
			t.Errorf("%s: %+v", filter, p.Results)
		}
	}
	if a := r.do("GET", toCreate+"?status=RUNNING", ""); a.body != `{"results":[],"next_page_id":null}` {
		t.Errorf("%s", a.body)
	}
	both := r.page("query=hay&selected_repository=team/b")
	if len(both.Results) != 1 {
		t.Errorf("two filters: %+v", both.Results)
	}
}

func TestListLimits(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for i := range 101 {
		r.create(fmt.Sprintf(`{"conversation_id":"c%d"}`, i))
	}
	for query, n := range map[string]int{"": 20, "limit=": 20, "limit=1": 1, "limit=100": 100} {
		if p := r.page(query); len(p.Results) != n || p.NextPageID == nil {
			t.Errorf("%q: %d results", query, len(p.Results))
		}
	}
}

// A page id says where, not whose.
func TestPageIDOfSomebodyElse(t *testing.T) {
	r := newRig(t, pairs())
	r.settle("ada", "bob")
	for range 4 {
		r.create(`{}`)
		r.as("bob", "POST", toCreate, `{}`).want(t, 200)
	}
	ada := r.page("limit=1")
	a := r.as("bob", "GET", toCreate+"?limit=100&page_id="+url.QueryEscape(*ada.NextPageID), "").want(t, 200)
	for _, c := range decoded[api.ConversationPage](t, a).Results {
		if row, _ := r.log.Row(t.Context(), session.ID(c.ConversationID)); row.Owner != "bob" {
			t.Errorf("bob sees %+v", row)
		}
	}
	if strings.Contains(a.body, `"ada"`) {
		t.Errorf("%s", a.body)
	}
}

func TestGetConversation(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{"repository":"team/app","selected_branch":"dev"}`)
	c := decoded[api.Conversation](t, r.do("GET", toCreate+"/"+id, "").want(t, 200))
	if c.ConversationID != id || c.Status != "STARTING" || *c.SelectedRepository != "team/app" || *c.SelectedBranch != "dev" || *c.GitProvider != "github" || *c.Trigger != "gui" ||
		c.SessionAPIKey != nil || c.LastEventID != 1 || c.PRNumber == nil || c.AgentState != "loading" {
		t.Errorf("%+v", c)
	}
	for _, ask := range []func() answer{
		func() answer { return r.as("bob", "GET", toCreate+"/"+id, "") },
		func() answer { return r.as("admin", "GET", toCreate+"/"+id, "") },
		func() answer { return r.as("bob", "PATCH", toCreate+"/"+id, `{"title":"mine"}`) },
		func() answer { return r.as("bob", "DELETE", toCreate+"/"+id, "") },
		func() answer { return r.as("bob", "GET", toCreate+"/"+id+"/events", "") },
		func() answer { return r.as("bob", "GET", toCreate+"/"+id+"/events/stream", "") },
		func() answer { return r.as("bob", "POST", toCreate+"/"+id+"/message", `{"message":"x"}`) },
		func() answer {
			return r.as("bob", "POST", toCreate+"/"+id+"/events", `{"action":"change_agent_state","args":{"agent_state":"stopped"}}`)
		},
	} {
		if a := ask(); a.body != r.do("GET", toCreate+"/unknown", "").body || a.status != 404 {
			t.Errorf("another user's looks different from an unknown one: %d %s", a.status, a.body)
		}
	}
	if n := len(r.events(id)); n != 1 {
		t.Errorf("%d events", n)
	}
}
