package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// event makes an event of a forged log.
func event(id int64, kind, payload string) Event {
	raw := fmt.Sprintf(`{"id":%d,"kind":%q,"payload":%s}`, id, kind, payload)
	return Event{ID: id, Kind: kind, Payload: json.RawMessage(payload), Raw: raw}
}

// good is the history of a conversation in which all is well: one command, whose result is
// known, one whose sandbox was lost, and a lost model call.
func good() Conversation {
	h := Conversation{
		ID: "c", Owner: "ada", State: "awaiting_user_input", LastEvent: 17, Cost: 0.012, Limit: 0.1,
		Requests: []Request{{Create, "go", true}, {Rename, "a title", true}, {Say, "and again", true}, {Say, "never sent", false}},
		Marks:    []string{"m-1.0", "m-1.1"},
		Log: []Event{
			event(1, "created", `{"owner":"ada"}`),
			event(2, "user_said", `{"text":"go"}`),
			event(3, "titled", `{"title":"a title","by_user":true}`),
			event(5, "turn_began", `{}`), // 4 is a claim, which is not shown
			event(6, "model_asked", `{"call":"m6","reserved":9000000}`),
			event(7, "model_failed", `{"call":"m6","class":"owner_lost","cost":9000000,"totals":{"cost":9000000}}`),
			event(8, "model_asked", `{"call":"m8","reserved":9000000}`),
			event(9, "model_answered", `{"call":"m8","cost":3000000,"totals":{"cost":12000000}}`),
			event(10, "tool_called", `{"id":"a","name":"execute_bash","args":{"command":"sleep 0; echo m-1.0 >> marks"}}`),
			event(11, "tool_returned", `{"id":"a","cause":10,"outcome":"ok","details":{"exit_code":0}}`),
			event(12, "tool_called", `{"id":"b","name":"execute_bash","args":{"command":"echo m-1.1 >> marks; sleep 1"}}`),
			event(13, "tool_returned", `{"id":"b","cause":12,"outcome":"unknown"}`),
			event(14, "tool_called", `{"id":"c","name":"execute_bash","args":{"command":"echo m-1.2 >> marks"}}`),
			event(15, "tool_returned", `{"id":"c","cause":14,"outcome":"unknown"}`),
			event(16, "user_said", `{"text":"and again"}`),
			event(17, "turn_ended", `{"up_to":16,"state":"awaiting_user_input"}`),
		},
	}
	h.Followers = []Follower{{Name: "first", Saw: all(h.Log)}, {Name: "late", From: 5, Saw: all(h.Log[4:])}}
	return h
}

func all(log []Event) []Seen {
	var out []Seen
	for _, e := range log {
		out = append(out, Seen{e.ID, e.Raw})
	}
	return out
}

// without removes the event with a number from the log, and from what followers saw.
func (h *Conversation) without(id int64) {
	h.Log = slices.DeleteFunc(h.Log, func(e Event) bool { return e.ID == id })
	for i := range h.Followers {
		h.Followers[i].Saw = slices.DeleteFunc(h.Followers[i].Saw, func(s Seen) bool { return s.ID == id })
	}
}

// with adds an event at the end of the log and of what followers saw.
func (h *Conversation) with(id int64, kind, payload string) {
	e := event(id, kind, payload)
	h.Log, h.LastEvent = append(h.Log, e), max(id, h.LastEvent)
	for i := range h.Followers {
		h.Followers[i].Saw = append(h.Followers[i].Saw, Seen{e.ID, e.Raw})
	}
}

// replace puts another payload into the event with a number.
func (h *Conversation) replace(id int64, payload string) {
	for i, e := range h.Log {
		if e.ID == id {
			h.Log[i] = event(id, e.Kind, payload)
		}
	}
	h.Followers = nil
}

// Each forged history breaks one rule, and the checker names that rule and no other.
func TestForgedHistories(t *testing.T) {
	t.Parallel()
	if found := Of(good()); len(found) > 0 {
		t.Fatalf("a good history breaks rules: %v", found)
	}
	for name, c := range map[string]struct {
		forge func(*Conversation)
		rule  string
		says  string
	}{
		"a lost message":                  {func(h *Conversation) { h.without(16) }, RuleAcknowledged, `"and again" was acknowledged`},
		"a lost first message":            {func(h *Conversation) { h.without(2) }, RuleAcknowledged, `create "go"`},
		"a lost title":                    {func(h *Conversation) { h.without(3) }, RuleAcknowledged, `rename "a title"`},
		"a message twice":                 {func(h *Conversation) { h.replace(2, `{"text":"and again"}`); h.Requests = h.Requests[1:] }, RuleOnce, "2 times"},
		"a number twice":                  {func(h *Conversation) { h.Log = slices.Insert(h.Log, 3, h.Log[2]); h.Followers = nil }, RuleNumbers, "event 3 follows event 3"},
		"a number that falls":             {func(h *Conversation) { h.Log[3], h.Log[2] = h.Log[2], h.Log[3]; h.Followers = nil }, RuleNumbers, "event 3 follows event 5"},
		"no beginning":                    {func(h *Conversation) { h.without(1) }, RuleNumbers, "does not begin"},
		"a row behind its log":            {func(h *Conversation) { h.LastEvent = 3 }, RuleNumbers, "GET shows 3"},
		"an event that changed":           {func(h *Conversation) { h.Followers[0].Saw[2].Raw = `{"id":3}` }, RuleNumbers, "event 3 changed"},
		"a follower that missed one":      {func(h *Conversation) { h.Followers[1].Saw = slices.Delete(h.Followers[1].Saw, 2, 3) }, RuleFollowers, "late did not see event 8"},
		"a follower that missed the end":  {func(h *Conversation) { h.Followers[0].Saw = h.Followers[0].Saw[:15] }, RuleFollowers, "first did not see event 17"},
		"a follower that saw one twice":   {func(h *Conversation) { s := &h.Followers[0].Saw; *s = slices.Insert(*s, 3, (*s)[2]) }, RuleFollowers, "first saw event 3 again"},
		"an event that was never stored":  {func(h *Conversation) { s := &h.Followers[0].Saw; *s = append(*s, Seen{18, "{}"}) }, RuleFollowers, "event 18, which is not in the log"},
		"an event in the place of others": {func(h *Conversation) { s := &h.Followers[0].Saw; *s = slices.Insert(*s, 3, Seen{4, "{}"}) }, RuleFollowers, "event 4, which is not in the log"},
		"a call without a result":         {func(h *Conversation) { h.without(15) }, RuleResults, "call 14 has no result"},
		"a call with two results":         {func(h *Conversation) { h.with(18, "tool_returned", `{"id":"a","cause":10,"outcome":"ok"}`) }, RuleResults, "event 18 is a result of call 10"},
		"a command that ran twice":        {func(h *Conversation) { h.Marks = append(h.Marks, "m-1.0") }, RuleMarks, "ran 2 times"},
		"an unknown one that ran twice":   {func(h *Conversation) { h.Marks = append(h.Marks, "m-1.2", "m-1.2") }, RuleMarks, "ran 2 times"},
		"a success that never ran":        {func(h *Conversation) { h.Marks = h.Marks[1:] }, RuleMarks, "left no mark"},
		"a command outside the log":       {func(h *Conversation) { h.Marks = append(h.Marks, "m-9.9") }, RuleMarks, "no call in the log"},
		"a cost that was forgotten":       {func(h *Conversation) { h.Cost = 0.003 }, RuleMoney, "GET shows the cost 0.003"},
		"a total that was lost": {func(h *Conversation) {
			h.replace(9, `{"call":"m8","cost":3000000,"totals":{"cost":3000000}}`)
		}, RuleMoney, "the sum is 12000000"},
		"a call that is not settled": {func(h *Conversation) { h.with(18, "model_asked", `{"call":"m18"}`) }, RuleMoney, "m18 is not settled"},
		"a call that is settled twice": {func(h *Conversation) {
			h.with(18, "model_failed", `{"call":"m8","totals":{"cost":12000000}}`)
		}, RuleMoney, "not open"},
		"a limit that did not hold": {func(h *Conversation) { h.Limit = 0.011 }, RuleMoney, "its limit is 0.011"},
		"an agent that still runs":  {func(h *Conversation) { h.State = "running" }, RuleRest, `"running"`},
		"a message nobody read":     {func(h *Conversation) { h.replace(17, `{"up_to":2}`) }, RuleRest, "message 16 was never handled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			c.forge(&h)
			found := Of(h)
			if len(found) == 0 {
				t.Fatal("the checker did not notice")
			}
			for _, v := range found {
				if v.Rule != c.rule {
					t.Errorf("another rule: %v", v)
				}
			}
			if !strings.Contains(fmt.Sprint(found), c.says) {
				t.Errorf("%v, wanted %q", found, c.says)
			}
		})
	}
}

func TestForgedAccounts(t *testing.T) {
	t.Parallel()
	fine := Account{User: "ada", Spent: 2, Conversations: 2, Billed: 1.5, Limit: 2}
	if found := Accounts([]Account{fine}); len(found) > 0 {
		t.Fatal(found)
	}
	for name, forge := range map[string]func(*Account){
		"a cent less":         func(a *Account) { a.Spent -= 0.01 },
		"a cent more":         func(a *Account) { a.Conversations -= 0.01 },
		"a bill not recorded": func(a *Account) { a.Billed = 2.01 },
		"a reservation left":  func(a *Account) { a.Reserved = 0.01 },
		"above the limit":     func(a *Account) { a.Limit = 1.99 },
	} {
		a := fine
		forge(&a)
		if found := Accounts([]Account{a}); len(found) != 1 || found[0].Rule != RuleMoney {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestForgedRemains(t *testing.T) {
	t.Parallel()
	fine := Machine{Goroutines: []Growth{{"server0", 30, 35}}, Descriptors: []Growth{{"server0", 20, 21}}}
	if found := Remains(fine); len(found) > 0 {
		t.Fatal(found)
	}
	for name, m := range map[string]Machine{
		"a sandbox":   {Sandboxes: []string{"torture-1-2"}},
		"a process":   {Processes: []string{"12: sleep"}},
		"a file":      {Files: []string{"boxes/.scrap-1"}},
		"a group":     {Groups: []string{"/sys/fs/cgroup/pids/x"}},
		"goroutines":  {Goroutines: []Growth{{"server0", 30, 90}}},
		"descriptors": {Descriptors: []Growth{{"server0", 30, 90}}},
	} {
		if found := Remains(m); len(found) != 1 || found[0].Rule != RuleOrphans {
			t.Errorf("%s: %v", name, found)
		}
	}
	if v := Refused("c", "a request", errors.New("no")); v.Rule != RuleRefused || v.String() != "refused: c: a request: no" {
		t.Error(v)
	}
}
