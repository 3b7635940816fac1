package history

import (
	"bytes"
	"encoding/json"
	"slices"

	"deckhand/internal/session"
)

// How often the agent repeats itself before it counts as a loop.
const (
	sameTwice  = 4 // the same call with the same result
	sameFailed = 3 // the same call that fails, however
	sameWords  = 3 // the same words with nothing between them
	backForth  = 6 // two calls in turn
)

// Repeats records what the agent did since the last user message or reminder, and
// detects repetition.
type Repeats struct {
	acts  []act
	words []string
	// Nudged is set after the model got one reminder.
	Nudged bool
}

// act is a call and its result, without the parts that always differ.
type act struct {
	call, result string
	failed       bool
}

// kept is how many acts are stored: no rule looks further back.
const kept = 8

// Said records an answer without calls.
func (c *Repeats) Said(text string) {
	if c.words = append(c.words, text); len(c.words) > sameWords {
		c.words = c.words[1:]
	}
}

// Did records the result of a call.
func (c *Repeats) Did(r session.ToolReturned) {
	c.words = nil
	a := act{call: r.Name + "\x00" + compact(r.Args), result: r.Output, failed: r.Outcome != session.Succeeded || badExit(r.Details)}
	if c.acts = append(c.acts, a); len(c.acts) > kept {
		c.acts = c.acts[1:]
	}
}

// badExit is true for a command that ran and says that it failed.
func badExit(details json.RawMessage) bool {
	var d struct {
		ExitCode *int `json:"exit_code"`
	}
	return json.Unmarshal(details, &d) == nil && d.ExitCode != nil && *d.ExitCode > 0
}

func compact(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return string(args)
	}
	return b.String()
}

// Found returns how the agent repeats itself, or "" if it does not.
func (c *Repeats) Found() string {
	n := len(c.acts)
	tail := func(k int, like func(a, b act) bool) bool {
		if n < k {
			return false
		}
		for i := n - k + 1; i < n; i++ {
			if !like(c.acts[n-k], c.acts[i]) {
				return false
			}
		}
		return true
	}
	switch {
	case tail(sameTwice, func(a, b act) bool { return a.call == b.call && a.result == b.result }):
		return "the same call gave the same result four times"
	case tail(sameFailed, func(a, b act) bool { return a.call == b.call && a.failed && b.failed }):
		return "the same call failed three times"
	case c.alternates():
		return "the same two calls were made in turn with the same results"
	case len(c.words) == sameWords && c.words[0] == c.words[1] && c.words[1] == c.words[2]:
		return "the same words were said three times"
	}
	return ""
}

func (c *Repeats) alternates() bool {
	n := len(c.acts)
	if n < backForth {
		return false
	}
	last := c.acts[n-backForth:]
	for i := 2; i < backForth; i++ {
		if last[i].call != last[i-2].call || last[i].result != last[i-2].result {
			return false
		}
	}
	return last[0].call != last[1].call
}

// After returns what Found will return after another result.
func (c *Repeats) After(r session.ToolReturned) string {
	next := Repeats{acts: slices.Clone(c.acts)}
	next.Did(r)
	return next.Found()
}
