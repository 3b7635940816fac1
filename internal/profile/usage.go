package profile

import (
	"context"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
)

// Usage gives the numbers of a turn that go to the operator's collector, if the user
// consents. Nothing in them tells who, where or about what: of a model only its
// provider, of tools only those that every server has.
func (b *Builder) Usage(owner string, w agent.Work) (labels map[string]string, counts map[string]int64, ok bool) {
	consents := false
	err := b.Settings.Read(context.Background(), owner, func(st *settings.Settings) {
		consents = st.UserConsentsToAnalytics != nil && *st.UserConsentsToAnalytics
	})
	if err != nil || !consents {
		return nil, nil, false
	}
	counts = map[string]int64{"model_calls": int64(w.Asks), "tokens_in": w.Input, "tokens_out": w.Output}
	for name, n := range w.Calls {
		if _, ours := tool.Find(name); !ours {
			name = "other"
		}
		counts["tool."+name] += int64(n)
	}
	return map[string]string{"provider": llm.Config{Model: w.Model}.Provider(), "ended": string(w.State)}, counts, true
}
