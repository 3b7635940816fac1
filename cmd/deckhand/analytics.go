package main

import (
	"context"
	"slices"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/settings"
)

// worked implements agent.Config.Worked: the numbers of users who consent go to
// the operator's collector. Nothing in them tells who, where or about what: of
// a model only its provider, of tools only those that every server has.
func (s *server) worked(owner string, w agent.Work) {
	if s.tracer == nil {
		return
	}
	consents := false
	err := s.settings.Read(context.Background(), owner, func(st *settings.Settings) {
		consents = st.UserConsentsToAnalytics != nil && *st.UserConsentsToAnalytics
	})
	if err != nil || !consents {
		return
	}
	counts := map[string]int64{"model_calls": int64(w.Asks), "tokens_in": w.Input, "tokens_out": w.Output}
	own := s.profiles.OwnTools()
	for name, n := range w.Calls {
		if !slices.Contains(own, name) {
			name = "other"
		}
		counts["tool."+name] += int64(n)
	}
	s.tracer.Count("usage", map[string]string{"provider": llm.Config{Model: w.Model}.Provider(), "ended": string(w.State)}, counts)
}
