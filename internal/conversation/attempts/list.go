package attempts

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"deckhand/api"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// List returns the attempts of a user's conversation, the newest set first.
func (s *Service) List(ctx context.Context, user string, from session.ID) (api.Attempts, error) {
	out := api.Attempts{Sets: []api.AttemptSet{}}
	if _, err := s.Conversations.Row(ctx, user, from); err != nil {
		return out, err
	}
	all, err := s.all(ctx, from)
	if err != nil {
		return out, err
	}
	masker, err := s.Conversations.Settings.Masker(ctx, user)
	if err != nil {
		return out, err
	}
	if out.AttemptOf, err = s.original(ctx, from); err != nil || len(all) == 0 {
		return out, err
	}
	model, err := s.defaultModel(ctx, user) // for attempts of earlier versions, which did not store it
	if err != nil {
		return out, err
	}
	for _, a := range all {
		one, shown, err := s.describe(ctx, a, model, masker)
		if err != nil {
			return out, err
		}
		if !shown {
			continue
		}
		at := slices.IndexFunc(out.Sets, func(set api.AttemptSet) bool { return set.ID == a.Set })
		if at < 0 {
			at = len(out.Sets)
			out.Sets = append(out.Sets, api.AttemptSet{ID: a.Set, Task: masker.String(a.Task), TestCommand: orNull(masker.String(a.Test)), EventID: zeroNull(a.Event), CreatedAt: a.At})
		}
		out.Sets[at].Attempts = append(out.Sets[at].Attempts, one)
	}
	slices.Reverse(out.Sets)
	return out, nil
}

// defaultModel returns the model of a user's settings, "" if there are no settings.
func (s *Service) defaultModel(ctx context.Context, user string) (model string, err error) {
	err = s.Conversations.Settings.Read(ctx, user, func(stored *settings.Settings) { model = s.Conversations.Models.Name(stored) })
	if errors.Is(err, settings.ErrNotFound) {
		err = nil
	}
	return model, err
}

// original returns the conversation that this one is an attempt of, nil if it is not an attempt.
func (s *Service) original(ctx context.Context, id session.ID) (*string, error) {
	st, err := s.Conversations.Sessions.Load(ctx, id)
	if err != nil || st.Created.Forked == nil {
		return nil, err
	}
	from := st.Created.Forked.From
	all, err := s.all(ctx, from)
	if err != nil || !slices.ContainsFunc(all, func(a Attempt) bool { return a.ID == id }) {
		return nil, err
	}
	return new(string(from)), nil
}

// describe returns the API representation of an attempt; shown is false if its conversation was deleted.
func (s *Service) describe(ctx context.Context, a Attempt, model string, masker *secret.Masker) (out api.Attempt, shown bool, err error) {
	out = api.Attempt{ConversationID: string(a.ID), Number: a.Number, State: string(a.State), Title: a.Title, Model: cmp.Or(a.Model, a.Default, model), ReasoningEffort: orNull(a.Effort),
		Instructions: orNull(masker.String(a.Instructions)), Error: orNull(a.Problem), SecondsWorked: a.Worked.Seconds()}
	if a.State == Deleting {
		return out, false, nil
	}
	st, err := s.Conversations.Sessions.Load(ctx, a.ID)
	if errors.Is(err, session.ErrNotFound) && (a.State == Starting || a.State == Failed) {
		return out, true, nil
	}
	if errors.Is(err, session.ErrNotFound) || err == nil && st.Deleted {
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	out.Title, out.Model, out.ReasoningEffort = st.Title, cmp.Or(st.Overrides.Model, a.Default, model), orNull(st.Overrides.Effort)
	row := st.Row()
	out.Status, out.AgentState, out.ErrorID, out.Reason = string(row.Shown()), string(st.Agent), orNull(st.ErrorID), orNull(st.Reason)
	out.Working, out.AccumulatedCost = st.Busy(), st.Totals.Cost.Dollars()
	did := activity{turns: a.Turns, worked: a.Worked}
	if a.State == Started {
		if did, err = s.read(ctx, st); err != nil {
			return out, false, err
		}
		out.SecondsWorked = did.worked.Seconds()
	}
	if d := a.Diff; d != nil && did.turns == a.Turns && a.Turns > 0 {
		out.Diff = &api.DiffSize{Files: d.Files, Added: d.Added, Removed: d.Removed}
	}
	if a.Test != "" {
		out.Test = a.tested(did, st)
		out.Test.Output = masker.String(out.Test.Output) // a secret may be newer than the result
	}
	return out, true, nil
}

// tested returns the API representation of the test result.
func (a Attempt) tested(did activity, st session.State) *api.TestResult {
	out := &api.TestResult{State: "waiting"}
	switch r := a.Result; {
	case a.State == Started && a.testDue(did, st):
		out.State = "running"
	case r == nil || a.State == Started && (did.turns > a.Tested || st.Busy()):
		return out // the result is for earlier files
	default:
		out.State, out.Output, out.Seconds, out.At = "failed", r.Output, r.Took.Seconds(), &r.At
		if out.Problem = orNull(r.Problem); r.Problem == "" {
			out.ExitCode = &r.Exit
		}
		if r.Passed() {
			out.State = "passed"
		}
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func zeroNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
