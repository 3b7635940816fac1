package git

import (
	"context"
	"errors"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
	"deckhand/internal/solvable"
)

const (
	aboutTasks = "Send a task as suggested_task to start a conversation. With enable_solvability_analysis, open issues have a solvability score; " +
		"a score that takes longer than a few seconds is null and available on a later request. " + aboutSeveral
	aboutStarters = "Returns the suggested tasks. The list is empty if enable_proactive_conversation_starters is off, no token is stored or no provider responds."
)

func (d *Handlers) suggestedTasks(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) ([]api.SuggestedTask, error) {
	all, err := d.forges(ctx, c.Who.User, "", NeedTasks)
	if err != nil {
		return nil, err
	}
	return d.tasks(ctx, c, all)
}

// starters is what the home page offers.
func (d *Handlers) starters(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Starters, error) {
	out := api.Starters{Enabled: settings.Defaults().EnableProactiveConversationStarters, Tasks: []api.SuggestedTask{}}
	err := d.Settings.Read(ctx, c.Who.User, func(s *settings.Settings) { out.Enabled = s.EnableProactiveConversationStarters })
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return out, err
	}
	if !out.Enabled {
		return out, nil
	}
	all, err := d.forges(ctx, c.Who.User, "", NeedTasks)
	var found []api.SuggestedTask
	if err == nil {
		found, err = d.tasks(ctx, c, all)
	}
	if _, said := errors.AsType[*rest.Fault](err); said { // no token, or no provider that answers
		return out, nil
	}
	out.Tasks = rest.OrEmpty(found)
	return out, err
}

// tasks asks the providers what is to be done.
func (d *Handlers) tasks(ctx context.Context, c *rest.Call, all []forge) ([]api.SuggestedTask, error) {
	found, err := askAll(ctx, d, c, all, func(ctx context.Context, f forge) ([]gitprovider.Task, error) { return f.Tasks(ctx) })
	if err != nil {
		return nil, err
	}
	out := []api.SuggestedTask{}
	var issues []solvable.Issue
	var at []int // where the issues are in out
	for _, a := range found {
		for _, t := range a.value {
			v := api.SuggestedTask{GitProvider: a.forge.name, TaskType: t.Type, Repo: t.Repository, IssueNumber: int64(t.Number), Title: t.Title}
			if t.Type == gitprovider.OpenIssue {
				issues, at = append(issues, issueOf(a.forge, t)), append(at, len(out))
			}
			out = append(out, v)
		}
	}
	for i, r := range d.rate(ctx, c.Who.User, issues) {
		out[at[i]].Solvability = api.Null[api.Solvability]()
		if r != nil {
			out[at[i]].Solvability = api.Some(api.Solvability{Score: r.Score, Sentence: r.Sentence})
		}
	}
	return out, nil
}

func issueOf(f forge, t gitprovider.Task) solvable.Issue {
	return solvable.Issue{Provider: f.name, Repository: t.Repository, Number: t.Number,
		Read: func(ctx context.Context) (gitprovider.Issue, error) { return f.Issue(ctx, t.Repository, t.Number) }}
}

// rate has the issues rated for a user who wants that; nil for one who does not.
func (d *Handlers) rate(ctx context.Context, user string, issues []solvable.Issue) []*solvable.Rating {
	wanted := false
	err := d.Settings.Read(ctx, user, func(s *settings.Settings) { wanted = s.EnableSolvabilityAnalysis })
	if err != nil || !wanted || d.Rater == nil || len(issues) == 0 {
		return nil
	}
	return d.Rater.Rate(ctx, user, issues)
}
