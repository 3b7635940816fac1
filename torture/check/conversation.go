package check

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
)

// Of returns the violations in the history of one conversation.
func Of(h Conversation) []Violation {
	c := &collector{conversation: h.ID}
	c.numbers(h)
	c.requests(h)
	c.followers(h)
	returned := c.results(h)
	c.marks(h, returned)
	c.money(h)
	c.rest(h)
	return c.found
}

// numbers: the log begins with the creation and its numbers only grow.
func (c *collector) numbers(h Conversation) {
	if len(h.Log) == 0 || h.Log[0].ID != 1 || h.Log[0].Kind != "created" {
		c.add(RuleNumbers, "the log does not begin with the event created")
	}
	last := int64(0)
	for _, e := range h.Log {
		if e.ID <= last {
			c.add(RuleNumbers, "event %d follows event %d", e.ID, last)
		}
		last = e.ID
	}
	if h.LastEvent < last {
		c.add(RuleNumbers, "GET shows %d as the last event, the log has %d", h.LastEvent, last)
	}
}

// requests: what was acknowledged is there, and nothing twice.
func (c *collector) requests(h Conversation) {
	said, titled := map[string]int{}, map[string]int{}
	for _, e := range h.Log {
		var p struct{ Text, Title string }
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Kind {
		case "user_said":
			said[p.Text]++
		case "titled":
			titled[p.Title]++
		}
	}
	for _, r := range h.Requests {
		n := said[r.Text]
		if r.Kind == Rename {
			n = titled[r.Text]
		}
		if r.Acked && n == 0 {
			c.add(RuleAcknowledged, "%s %q was acknowledged and is not in the log", r.Kind, r.Text)
		}
		// A title has no key, so a repeated request may be carried out again.
		if n > 1 && r.Kind != Rename {
			c.add(RuleOnce, "%s %q is in the log %d times", r.Kind, r.Text, n)
		}
	}
}

// followers: each saw the log after its first event, and nothing else.
func (c *collector) followers(h Conversation) {
	for _, f := range h.Followers {
		want := h.Log
		for len(want) > 0 && want[0].ID <= f.From {
			want = want[1:]
		}
		at := 0
		for _, s := range f.Saw {
			for at < len(want) && want[at].ID < s.ID {
				c.add(RuleFollowers, "%s did not see event %d (%s)", f.Name, want[at].ID, want[at].Kind)
				at++
			}
			switch {
			case at < len(want) && want[at].ID == s.ID:
				if want[at].Raw != s.Raw {
					c.add(RuleNumbers, "event %d changed: %s saw %s, the log has %s", s.ID, f.Name, s.Raw, want[at].Raw)
				}
				at++
			case at > 0 && s.ID <= want[at-1].ID:
				c.add(RuleFollowers, "%s saw event %d again, after event %d", f.Name, s.ID, want[at-1].ID)
			default:
				c.add(RuleFollowers, "%s saw event %d, which is not in the log: %s", f.Name, s.ID, s.Raw)
			}
		}
		for ; at < len(want); at++ {
			c.add(RuleFollowers, "%s did not see event %d (%s)", f.Name, want[at].ID, want[at].Kind)
		}
	}
}

// result is what is known of a call.
type result struct {
	Command string
	Outcome string
	Exit    *int
}

// results: each call has one result. They are returned by the number of the call.
func (c *collector) results(h Conversation) map[int64]result {
	out, open := map[int64]result{}, map[int64]bool{}
	for _, e := range h.Log {
		var p struct {
			Cause   int64
			Outcome string
			Args    struct{ Command string }
			Details struct {
				ExitCode *int `json:"exit_code"`
			}
		}
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Kind {
		case "tool_called":
			open[e.ID], out[e.ID] = true, result{Command: p.Args.Command}
		case "tool_returned":
			if !open[p.Cause] {
				c.add(RuleResults, "event %d is a result of call %d, which is not open", e.ID, p.Cause)
				continue
			}
			delete(open, p.Cause)
			out[p.Cause] = result{out[p.Cause].Command, p.Outcome, p.Details.ExitCode}
		}
	}
	for call := range open {
		c.add(RuleResults, "call %d has no result", call)
	}
	return out
}

// markOf finds the mark in a command.
var markOf = regexp.MustCompile(`echo (m-[\w.-]+) >> marks`)

// marks: what ran is what the log says.
func (c *collector) marks(h Conversation, calls map[int64]result) {
	left := map[string]int{}
	for _, m := range h.Marks {
		left[m]++
	}
	for id, r := range calls {
		m := markOf.FindStringSubmatch(r.Command)
		if m == nil {
			continue
		}
		n := left[m[1]]
		delete(left, m[1])
		switch {
		case n > 1:
			c.add(RuleMarks, "the command of call %d ran %d times: %s", id, n, m[1])
		case n == 0 && r.Outcome == "ok" && r.Exit != nil && *r.Exit == 0:
			c.add(RuleMarks, "call %d succeeded, but its command left no mark: %s", id, m[1])
		}
	}
	for mark, n := range left {
		c.add(RuleMarks, "the mark %s was left %d times, and no call in the log explains it", mark, n)
	}
}

// money: the cost of the conversation is the sum of its calls and within its limit.
func (c *collector) money(h Conversation) {
	var sum, total int64
	open := map[string]bool{}
	for _, e := range h.Log {
		var p struct {
			Call   string
			Cost   int64
			Totals struct{ Cost int64 }
		}
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Kind {
		case "model_asked":
			open[p.Call] = true
		case "model_answered", "model_failed":
			if !open[p.Call] {
				c.add(RuleMoney, "event %d settles the model call %s, which is not open", e.ID, p.Call)
			}
			delete(open, p.Call)
			sum += p.Cost
			if total = p.Totals.Cost; total != sum {
				c.add(RuleMoney, "event %d has the total cost %d, the sum is %d", e.ID, total, sum)
			}
		}
	}
	for call := range open {
		c.add(RuleMoney, "the model call %s is not settled", call)
	}
	if math.Abs(h.Cost-dollars(sum)) > tolerance {
		c.add(RuleMoney, "GET shows the cost %.9f, the log %.9f", h.Cost, dollars(sum))
	}
	if h.Limit > 0 && dollars(sum) > h.Limit+tolerance {
		c.add(RuleMoney, "it cost %.9f, its limit is %.9f", dollars(sum), h.Limit)
	}
}

// tolerance is below a billionth of a dollar, the unit of the log.
const tolerance = 0.5e-9

func dollars(n int64) float64 { return float64(n) / 1e9 }

// resting are the states in which the agent waits for its user.
var resting = []string{"awaiting_user_input", "finished", "error", "stopped", "paused", "rate_limited", "rejected"}

// rest: the agent waits, and has read everything.
func (c *collector) rest(h Conversation) {
	if !slices.Contains(resting, h.State) {
		c.add(RuleRest, "the agent is in the state %q", h.State)
	}
	var said, read, ended int64
	for _, e := range h.Log {
		var p struct {
			UpTo int64 `json:"up_to"`
		}
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Kind {
		case "user_said":
			said = e.ID
		case "turn_ended":
			read = max(read, p.UpTo)
		case "stopped", "failed", "paused":
			ended = e.ID
		}
	}
	if said > read && said > ended {
		c.add(RuleRest, "the message %d was never handled: the last turn handled events up to %d", said, read)
	}
}
