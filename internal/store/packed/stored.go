package packed

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"deckhand/internal/session"
)

// asStored returns a payload as session.Decode returns it after session.Encode, for the frequent kinds whose decoding is
// most of the cost of reading back what was just stored. It returns false for all other kinds, and for payloads that Encode
// changes.
func asStored(p session.Payload) (session.Payload, bool) {
	switch p := p.(type) {
	case session.Created:
		p.MCP = omitted(p.MCP)
		return p, p.Then == nil && p.Forked == nil && valid(p.Owner, p.Trigger, p.Repository, p.Branch, p.Provider, p.Address, p.Instructions,
			p.Replay, p.Fingerprint, string(p.Parent), p.Agent, p.Machine, string(p.Outside))
	case session.Claimed:
		return p, valid(p.By)
	case session.WorkspaceStep:
		return p, valid(p.Step, p.Message)
	case session.WorkspaceReady:
		handle, ok := compact(p.Handle)
		p.Handle = handle
		return p, ok
	case session.Briefed:
		b := briefingOf(p)
		return b.stored, b.ok
	case session.RecallAsked:
		return p, valid(p.Type, p.Query)
	case session.Recalled:
		details, ok := compact(p.Details)
		p.Details, p.Items = details, omitted(p.Items)
		for _, item := range p.Items {
			ok = ok && valid(item.Name, item.Trigger, item.Content)
		}
		return p, ok && valid(p.Text)
	case session.Titled:
		return p, valid(p.Title)
	case session.UserSaid:
		p.Images, p.Files = omitted(p.Images), omitted(p.Files)
		return p, valid(p.Text, p.Key) && valid(p.Images...) && valid(p.Files...)
	case session.TurnBegan:
		return p, true
	case session.ModelAsked:
		return p, valid(p.Call, p.Model, p.Purpose)
	case session.ModelAnswered:
		if len(p.ToolCalls) > 0 {
			p.ToolCalls = slices.Clone(p.ToolCalls)
		} else {
			p.ToolCalls = nil
		}
		for i, c := range p.ToolCalls {
			args, ok := compact(c.Args)
			if !ok || !valid(c.ID, c.Name) {
				return nil, false
			}
			p.ToolCalls[i].Args = args
		}
		raw, ok := compact(p.Raw)
		p.Raw = raw
		return p, ok && valid(p.Call, p.Text, p.Reasoning, p.Purpose)
	case session.ToolCalled:
		args, ok := compact(p.Args)
		p.Args = args
		return p, ok && valid(p.ID, p.Name, p.Thought, string(p.Origin))
	case session.ToolReturned:
		details, ok := compact(p.Details)
		args, fine := compact(p.Args)
		p.Details, p.Args, p.Images = details, args, omitted(p.Images)
		return p, ok && fine && valid(p.ID, p.Name, string(p.Outcome), p.Output, string(p.Origin)) && valid(p.Images...)
	case session.TurnEnded:
		return p, valid(string(p.State), p.ErrorID, p.Reason)
	}
	return nil, false
}

// valid reports whether texts are stored unchanged.
func valid(texts ...string) bool {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// omitted is what an omitted list decodes to.
func omitted[T any](l []T) []T {
	if len(l) == 0 {
		return nil
	}
	return l
}

// compact returns JSON as it is stored within other JSON.
func compact(raw json.RawMessage) (json.RawMessage, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	if json.Compact(&b, raw) != nil || !utf8.Valid(raw) {
		return nil, false
	}
	if bytes.ContainsAny(b.Bytes(), "<>&\u2028\u2029") {
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, b.Bytes())
		b = escaped
	}
	return b.Bytes(), true
}
