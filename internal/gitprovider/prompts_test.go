package gitprovider

import (
	"strings"
	"testing"

	"deckhand/api"
)

func TestPromptsSpeakTheProvidersLanguage(t *testing.T) {
	types := []string{"MERGE_CONFLICTS", "FAILING_CHECKS", "UNRESOLVED_COMMENTS", "OPEN_ISSUE", "OPEN_PR", "CREATE_MICROAGENT"}
	for provider, word := range map[string]string{"github": "pull request", "gitlab": "merge request", "bitbucket": "pull request", "enterprise_sso": "pull request", "unheard-of": "pull request"} {
		seen := map[string]string{}
		for _, kind := range types {
			text := TaskPrompt(api.SuggestedTask{GitProvider: provider, TaskType: kind, Repo: "team/app", IssueNumber: 4711, Title: `The "wheel"`})
			if other := seen[text]; other != "" {
				t.Errorf("%s: %s says what %s says", provider, kind, other)
			}
			seen[text] = kind
			for _, part := range []string{"team/app", "#4711", `The \"wheel\"`, word} {
				if !strings.Contains(text, part) {
					t.Errorf("%s %s does not mention %q: %s", provider, kind, part, text)
				}
			}
			if strings.Contains(text, "%!") || strings.Contains(text, "TOKEN") {
				t.Errorf("%s %s: %s", provider, kind, text)
			}
		}
	}
	if text := MicroagentPrompt(api.CreateMicroagent{Repo: "team/app"}); !strings.Contains(text, "team/app") || strings.Contains(text, `""`) {
		t.Errorf("%s", text)
	}
	if text := MicroagentPrompt(api.CreateMicroagent{Repo: "team/app", GitProvider: api.Some("gitlab"), Title: api.Some("  Deploying ")}); !strings.Contains(text, `"Deploying"`) || !strings.Contains(text, "merge request") {
		t.Errorf("%s", text)
	}
}
