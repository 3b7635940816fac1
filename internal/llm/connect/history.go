package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

const (
	// maxName is the longest name of a tool that all providers take.
	maxName = 64
	// maxID is the longest id of a call that OpenAI takes; Anthropic takes more.
	maxID = 40
)

// acceptable replaces names of tools, and with ids also ids of calls, that
// providers refuse. Models make names up, and some put more than a name into
// them; ids may come from another provider, for people change models. One of
// them in the history would have every later request refused. The history may be
// long and is sent again with every step, so what needed no change is not looked at twice.
func acceptable(messages []llm.Message, ids bool, known *llm.Written) []llm.Message {
	kind := "names"
	if ids {
		kind = "names and ids"
	}
	out := messages
	mine := func() { // before the first change
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
	}
	for i := min(known.Accepted(kind), len(messages)); i < len(messages); i++ {
		m := messages[i]
		if m.Role == llm.ToolResult {
			name, id := nameOf(m.Name), idOf(m.Call, ids)
			if m.Name == "" {
				name = "" // adapters that need a name find it in the call
			}
			if name != m.Name || id != m.Call {
				mine()
				out[i].Name, out[i].Call = name, id
			}
			continue
		}
		if !slices.ContainsFunc(m.Calls, func(c llm.Call) bool { return nameOf(c.Name) != c.Name || idOf(c.ID, ids) != c.ID }) {
			continue
		}
		mine()
		calls := slices.Clone(m.Calls)
		for j, c := range calls {
			calls[j].Name, calls[j].ID = nameOf(c.Name), idOf(c.ID, ids)
		}
		out[i].Calls = calls
	}
	if len(messages) > 0 && &out[0] == &messages[0] {
		known.Accept(kind, len(messages))
	}
	return out
}

// nameOf is the name if it is one that all providers take, or what is like it.
func nameOf(name string) string {
	if usual(name) {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '_'
	}, name)
	if plain == "" || strings.IndexByte("-0123456789", plain[0]) >= 0 { // Gemini's begin with a letter or _
		plain = "_" + plain
	}
	return plain[:min(len(plain), maxName)]
}

// usual reports whether a name is surely taken, as nearly all are.
func usual(name string) bool {
	for i := range len(name) {
		if c := name[i]; ('a' > c || c > 'z') && ('A' > c || c > 'Z') && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// idOf is the id if it may stay, or one that is the same for the same id.
func idOf(id string, strict bool) string {
	if !strict || id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return !plainRune(r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

func plainRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}
