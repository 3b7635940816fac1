package gitprovider

import (
	"strings"
	"testing"

	"deckhand/api"
)

// taskTypes are all that a client may send, with what each must tell the agent.
var taskTypes = map[string][]string{
	"MERGE_CONFLICTS":     {"read_issue (number 4711, kind pull_request)", "conflicts", "Merge the base branch", "push to the branch"},
	"FAILING_CHECKS":      {"read_issue (number 4711, kind pull_request)", "CHECKS", "Reproduce", "push to the branch", "30 seconds"},
	"UNRESOLVED_COMMENTS": {"read_issue (number 4711, kind pull_request)", "remarks of reviewers", "push to the branch", "comment_on_issue"},
	"OPEN_PR":             {"read_issue (number 4711, kind pull_request)", "Review the state", "comment_on_issue", "push to its branch"},
	"OPEN_ISSUE":          {"issue #4711", "read_issue", "Create a branch", "open a REQUEST with TOOL", "refers to #4711"},
	"CREATE_MICROAGENT":   {"#4711", "read_issue", ".openhands/microagents/", "front matter", "triggers", "open a REQUEST with TOOL"},
}

// providers are how each speaks: what it is called, its requests, their mark,
// its checks, the tool that opens one and where git finds one.
var providers = map[string]struct{ name, request, mark, checks, tool, ref string }{
	"github":         {"on GitHub", "pull request", "#4711", "GitHub Actions", "create_pr", "pull/4711/head"},
	"gitlab":         {"on GitLab", "merge request", "!4711", "CI pipelines", "create_mr", "merge-requests/4711/head"},
	"bitbucket":      {"on Bitbucket", "pull request", "#4711", "Bitbucket Pipelines", "create_bitbucket_pr", ""},
	"gitea":          {"on Gitea", "pull request", "#4711", "Actions", "create_gitea_pr", "pull/4711/head"},
	"forgejo":        {"on Forgejo", "pull request", "#4711", "Actions", "create_gitea_pr", "pull/4711/head"},
	"enterprise_sso": {"on the git host", "pull request", "#4711", "CI jobs", "create_pr", ""},
	"unheard-of":     {"on the git host", "pull request", "#4711", "CI jobs", "create_pr", ""},
}

func TestPromptsSpeakTheProvidersLanguage(t *testing.T) {
	for provider, p := range providers {
		seen := map[string]string{}
		for kind, must := range taskTypes {
			t.Run(provider+"/"+kind, func(t *testing.T) {
				text := TaskPrompt(api.SuggestedTask{GitProvider: provider, TaskType: kind, Repo: "team/app", IssueNumber: 4711, Title: `The "wheel"`})
				if other := seen[text]; other != "" {
					t.Errorf("it says what %s says", other)
				}
				seen[text] = kind
				want := append([]string{"team/app", "4711", `The \"wheel\"`, p.request, "there is no token in the sandbox"}, must...)
				if strings.Contains(text, "kind pull_request") {
					want = append(want, p.request+" "+p.mark, p.name, p.ref)
				}
				fill := strings.NewReplacer("REQUEST", p.request, "TOOL", p.tool, "CHECKS", p.checks)
				for _, part := range want {
					if !strings.Contains(text, fill.Replace(part)) {
						t.Errorf("it does not mention %q: %s", fill.Replace(part), text)
					}
				}
				foreign := strings.Contains(text, "merge-requests") && provider != "gitlab" || strings.Contains(text, "pull/4711") && p.ref != "pull/4711/head"
				if foreign || strings.Contains(text, "%!") || strings.Contains(text, "TOKEN") || strings.Contains(text, "  ") {
					t.Errorf("%s", text)
				}
			})
		}
	}
}

func TestMicroagentPrompt(t *testing.T) {
	for _, c := range []struct {
		ask  api.CreateMicroagent
		want []string
	}{
		{api.CreateMicroagent{Repo: "team/app"}, []string{"team/app", "useful knowledge", "under .openhands/microagents/", "create_pr"}},
		{api.CreateMicroagent{Repo: "team/app", GitProvider: api.Some("gitlab"), Title: api.Some("  Deploying ")}, []string{`"Deploying"`, "merge request with create_mr"}},
		{api.CreateMicroagent{Repo: "team/.openhands", GitProvider: api.Some("github")}, []string{"under microagents/", "pull request with create_pr"}},
		{api.CreateMicroagent{Repo: "team/openhands-config", GitProvider: api.Some("gitlab")}, []string{"under microagents/"}},
		{api.CreateMicroagent{Repo: "team/app", GitProvider: api.Some("bitbucket")}, []string{"with create_bitbucket_pr"}},
		{api.CreateMicroagent{Repo: "team/app", GitProvider: api.Some("forgejo")}, []string{"with create_gitea_pr"}},
	} {
		text := MicroagentPrompt(c.ask)
		for _, part := range append(c.want, "front matter", "no token in the sandbox") {
			if !strings.Contains(text, part) {
				t.Errorf("%+v: no %q in %s", c.ask, part, text)
			}
		}
		if strings.Contains(text, `""`) || strings.Contains(text, "%!") {
			t.Error(text)
		}
	}
}
