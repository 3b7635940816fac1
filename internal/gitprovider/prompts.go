package gitprovider

import (
	"fmt"
	"strings"

	"deckhand/api"
)

// words are what a provider calls its things.
type words struct{ provider, request, short, checks string }

var vocabulary = map[string]words{
	"github":         {"GitHub", "pull request", "PR", "GitHub Actions"},
	"gitlab":         {"GitLab", "merge request", "MR", "CI pipelines"},
	"bitbucket":      {"Bitbucket", "pull request", "PR", "Bitbucket Pipelines"},
	"gitea":          {"Gitea", "pull request", "PR", "Actions"},
	"forgejo":        {"Forgejo", "pull request", "PR", "Actions"},
	"enterprise_sso": {"the git host", "pull request", "PR", "CI jobs"},
}

// speak finds the words of a provider; an unknown one gets the general ones.
func speak(provider string) words {
	if w, ok := vocabulary[provider]; ok {
		return w
	}
	return vocabulary["enterprise_sso"]
}

// TaskPrompt is what the agent is told to do about a suggested task.
func TaskPrompt(t api.SuggestedTask) string {
	w := speak(t.GitProvider)
	about := fmt.Sprintf("You are working on %s #%d (%q) in the repository %s on %s. Look up its details,"+
		" check out its branch, and read the changes against the base branch. ", w.request, t.IssueNumber, t.Title, t.Repo, w.provider)
	switch t.TaskType {
	case "MERGE_CONFLICTS":
		return about + "Merge the base branch, find the conflicts, and resolve them. Where the right resolution is not clear, read the history of the lines in conflict."
	case "FAILING_CHECKS":
		return about + fmt.Sprintf("Find out which of the %s fail on the newest commit, reproduce the failure, fix it and push. Then wait until the checks ran again,"+
			" looking about every 30 seconds, and repeat until all pass.", w.checks)
	case "UNRESOLVED_COMMENTS":
		return about + "Read all review comments, find those that were not dealt with, deal with each of them, and push to the same branch."
	case "OPEN_PR":
		return about + fmt.Sprintf("Review the state of this %s: finish what is missing, make its checks pass, and say in a comment what you did and what remains.", w.short)
	case "CREATE_MICROAGENT":
		return MicroagentPrompt(api.CreateMicroagent{Repo: t.Repo, GitProvider: api.Some(t.GitProvider), Title: api.Some(t.Title)}) +
			fmt.Sprintf(" It was asked for in #%d, which says more: read it first.", t.IssueNumber)
	}
	return fmt.Sprintf("You are working on issue #%d (%q) in the repository %s on %s. Read the issue and its comments."+
		" Create a branch, solve the issue, and open a %s that refers to it.", t.IssueNumber, t.Title, t.Repo, w.provider, w.request)
}

// MicroagentPrompt is what the agent is told when somebody wants a microagent.
func MicroagentPrompt(m api.CreateMicroagent) string {
	w := speak(m.GitProvider.Value)
	about := "useful knowledge about this repository"
	if title := strings.TrimSpace(m.Title.Value); title != "" {
		about = fmt.Sprintf("%q", title)
	}
	return fmt.Sprintf("Write a microagent for the repository %s about %s. Look at the repository first. Put the text into a new file under .openhands/microagents/,"+
		" with a front matter that names it and lists the words that shall call it up, commit it to a branch of its own and open a %s.", m.Repo, about, w.request)
}
