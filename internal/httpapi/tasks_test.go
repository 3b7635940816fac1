package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/solvable"
)

// busy is a host with one task of each kind that providers suggest.
func busy() *place {
	return &place{
		tasks: func(context.Context) ([]gitprovider.Task, error) {
			return []gitprovider.Task{{Type: gitprovider.MergeConflicts, Repository: "team/app", Number: 1, Title: "One"}, {Type: gitprovider.FailingChecks, Repository: "team/app", Number: 2, Title: "Two"},
				{Type: gitprovider.UnresolvedComments, Repository: "team/app", Number: 3, Title: "Three"}, {Type: gitprovider.OpenIssue, Repository: "team/app", Number: 4, Title: "Four"}}, nil
		},
		issue: func(repository string, number int) (gitprovider.Issue, error) {
			return gitprovider.Issue{Number: number, Title: "Four", Body: "It is broken in " + repository}, nil
		},
	}
}

func TestSuggestedTasks(t *testing.T) {
	var asked atomic.Int64
	rater := solvable.New(func(_ context.Context, user, _, question string) (string, error) {
		asked.Add(1)
		if user != "ada" || !strings.Contains(question, "It is broken in team/app") {
			t.Errorf("%s is asked %s", user, question)
		}
		return `{"score":0.5,"sentence":"Perhaps."}`, nil
	}, slog.New(slog.DiscardHandler))
	defer rater.Close()
	_, with := newStreet(map[string]*place{"github": broken(failing("github", gitprovider.Unavailable)), "gitlab": busy()})
	r := newRig(t, with, tune{config: func(c *Config) { c.Git.Rater = rater }})
	r.tokens("ada", "github", "gitlab")
	const first = `[{"git_provider":"gitlab","task_type":"MERGE_CONFLICTS","repo":"team/app","issue_number":1,"title":"One"},{"git_provider":"gitlab","task_type":"FAILING_CHECKS","repo":"team/app","issue_number":2,"title":"Two"},` +
		`{"git_provider":"gitlab","task_type":"UNRESOLVED_COMMENTS","repo":"team/app","issue_number":3,"title":"Three"},{"git_provider":"gitlab","task_type":"OPEN_ISSUE","repo":"team/app","issue_number":4,"title":"Four"`
	const rated = `,"solvability":{"score":0.5,"sentence":"Perhaps."}}]`
	for range 2 {
		if a := r.do("GET", "/api/user/suggested-tasks", "").want(t, 200); a.body != first+rated || a.header.Get("X-Failed-Providers") != "github" {
			t.Errorf("%s", a.body)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the model was asked %d times", asked.Load())
	}
	r.do("GET", "/api/starters", "").want(t, 200, `{"enabled":true,"tasks":`+first+rated)

	// What a client got it may send back as it is.
	got := decoded[[]map[string]any](t, r.do("GET", "/api/user/suggested-tasks", ""))
	r.do("POST", toSettings, `{"llm_model":"`+keyless+`","enable_solvability_analysis":false,"enable_proactive_conversation_starters":false}`).want(t, 200)
	r.create(`{"suggested_task":` + encoded(t, got[3]) + `}`)
	r.create(`{"suggested_task":{"git_provider":"github","task_type":"OPEN_ISSUE","repo":"a/b","issue_number":1,"title":"x","solvability":null}}`)

	if a := r.do("GET", "/api/user/suggested-tasks", "").want(t, 200); a.body != first+"}]" {
		t.Errorf("%s", a.body)
	}
	r.do("GET", "/api/starters", "").want(t, 200, `{"enabled":false,"tasks":[]}`)
}

// A model that does not know leaves null; a home page does not fail for a provider.
func TestTasksWithoutARating(t *testing.T) {
	rater := solvable.New(func(context.Context, string, string, string) (string, error) { return "Who knows?", nil }, slog.New(slog.DiscardHandler))
	defer rater.Close()
	s, with := newStreet(map[string]*place{"gitlab": busy()})
	r := newRig(t, with, tune{config: func(c *Config) { c.Git.Rater = rater }})
	r.do("GET", "/api/starters", "").want(t, 200, `{"enabled":true,"tasks":[]}`)
	r.tokens("ada", "gitlab")
	r.do("GET", "/api/user/suggested-tasks", "").want(t, 200, `"title":"Four","solvability":null}`)
	s.hosts["gitlab"] = broken(failing("gitlab", gitprovider.BadToken))
	r.do("GET", "/api/user/suggested-tasks", "").want(t, 401, "GitLab rejected")
	if got := decoded[api.Starters](t, r.do("GET", "/api/starters", "").want(t, 200)); !got.Enabled || len(got.Tasks) != 0 {
		t.Errorf("%+v", got)
	}
}
