package sim

import (
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// The simulation is worth as much as its eyes: these are histories that must not
// be taken for well formed.
func TestWellFormed(t *testing.T) {
	said := llm.Message{Role: llm.User, Text: "go"}
	words := llm.Message{Role: llm.Assistant, Text: "yes"}
	calls := llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "a"}, {ID: "b"}}}
	result := func(id string) llm.Message { return llm.Message{Role: llm.ToolResult, Call: id, Text: "x"} }
	for name, c := range map[string]struct {
		messages []llm.Message
		ok       bool
	}{
		"a message":               {[]llm.Message{said}, true},
		"calls and results":       {[]llm.Message{said, calls, result("b"), result("a")}, true},
		"ids that come again":     {[]llm.Message{said, calls, result("a"), result("b"), calls, result("a"), result("b")}, true},
		"nothing":                 {nil, false},
		"an answer first":         {[]llm.Message{words, said}, false},
		"an answer last":          {[]llm.Message{said, words}, false},
		"an empty message":        {[]llm.Message{{Role: llm.User, Text: " \n"}}, false},
		"an empty answer":         {[]llm.Message{said, {Role: llm.Assistant}, said}, false},
		"a result too few":        {[]llm.Message{said, calls, result("a")}, false},
		"a result too many":       {[]llm.Message{said, calls, result("a"), result("b"), result("b")}, false},
		"a result of no call":     {[]llm.Message{said, result("a")}, false},
		"words before the result": {[]llm.Message{said, calls, result("a"), said, result("b")}, false},
		"an unknown role":         {[]llm.Message{{Role: "system", Text: "x"}}, false},
	} {
		if err := wellFormed(c.messages); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call is made as the log has it, and not before the person said yes.
func TestOrdered(t *testing.T) {
	called := session.ToolCalled{ToolCall: session.ToolCall{ID: "c0", Name: localName, Args: []byte(`{"command":"a"}`)}}
	asked, yes, no := session.ApprovalAsked{ID: "c0"}, session.ApprovalGiven{ID: "c0", Approved: true}, session.ApprovalGiven{ID: "c0"}
	edited := session.ApprovalGiven{ID: "c0", Approved: true, Args: []byte(`{"command":"b"}`)}
	for name, c := range map[string]struct {
		log  []session.Payload
		args string
		ok   bool
	}{
		"as called":        {[]session.Payload{called}, `{"command":"a"}`, true},
		"approved":         {[]session.Payload{called, asked, yes}, `{"command":"a"}`, true},
		"edited":           {[]session.Payload{called, asked, edited}, `{"command":"b"}`, true},
		"not in the log":   {nil, `{"command":"a"}`, false},
		"not answered yet": {[]session.Payload{called, asked}, `{"command":"a"}`, false},
		"rejected":         {[]session.Payload{called, asked, no}, `{"command":"a"}`, false},
		"edited in vain":   {[]session.Payload{called, asked, edited}, `{"command":"a"}`, false},
		"another's yes":    {[]session.Payload{called, asked, called, asked, yes}, `{"command":"a"}`, false},
	} {
		var history []session.Event
		for i, p := range c.log {
			history = append(history, session.Event{Number: int64(i) + 1, Payload: p})
		}
		if err := ordered(history, tool.Call{ID: "1-c0", Args: []byte(c.args)}); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
