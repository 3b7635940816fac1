package gitprovider

import (
	"fmt"
	"path"
	"strings"

	"deckhand/api"
)

// words are what a provider calls its things.
type words struct {
	provider, request, short, checks string
	// tool opens a request there.
	tool string
	// mark stands before a request's number, ref is where git finds its commits;
	// "" if it does not.
	mark, ref string
}

var vocabulary = map[string]words{
	"github":         {"GitHub", "pull request", "PR", "GitHub Actions", "create_pr", "#", "pull/%d/head"},
	"gitlab":         {"GitLab", "merge request", "MR", "CI pipelines", "create_mr", "!", "merge-requests/%d/head"},
	"bitbucket":      {"Bitbucket", "pull request", "PR", "Bitbucket Pipelines", "create_bitbucket_pr", "#", ""},
	"gitea":          {"Gitea", "pull request", "PR", "Actions", "create_gitea_pr", "#", "pull/%d/head"},
	"forgejo":        {"Forgejo", "pull request", "PR", "Actions", "create_gitea_pr", "#", "pull/%d/head"},
	"enterprise_sso": {"the git host", "pull request", "PR", "CI jobs", "create_pr", "#", ""},
}

// speak finds the words of a provider; an unknown one gets the general ones.
func speak(provider string) words {
	if w, ok := vocabulary[provider]; ok {
		return w
	}
	return vocabulary["enterprise_sso"]
}

// noToken says what the agent has in place of one.
const noToken = " Git reaches the repository by itself, for reading and for pushing; there is no token in the sandbox, so do not look for one and do not call the API of %s with commands: use your tools."

// TaskPrompt is what the agent is told to do about a suggested task.
func TaskPrompt(t api.SuggestedTask) string {
	w := speak(t.GitProvider)
	switch t.TaskType {
	case "MERGE_CONFLICTS":
		return w.opening(t) + fmt.Sprintf(" Merge the base branch into it, find the conflicts, and resolve them; where the right resolution is not clear,"+
			" read the history of the lines in conflict. Make sure that the tests pass, commit, and push to the branch of the %s.", w.request)
	case "FAILING_CHECKS":
		return w.opening(t) + fmt.Sprintf(" Find out which of the %s fail on the newest commit: read_issue lists them, and their definition is in the repository. Reproduce the failure,"+
			" fix it, commit and push to the branch of the %s. Then wait until the checks ran again, looking about every 30 seconds with read_issue, and repeat until all pass.", w.checks, w.request)
	case "UNRESOLVED_COMMENTS":
		return w.opening(t) + fmt.Sprintf(" Read all remarks of reviewers that read_issue shows, find those that were not dealt with, deal with each of them, commit,"+
			" and push to the branch of the %s. Where a remark needs an answer and not a change, give it with comment_on_issue.", w.request)
	case "OPEN_PR":
		return w.opening(t) + fmt.Sprintf(" Review the state of this %s: finish what is missing, make its checks pass, push to its branch,"+
			" and say in a comment with comment_on_issue what you did and what remains.", w.short)
	case "CREATE_MICROAGENT":
		return MicroagentPrompt(api.CreateMicroagent{Repo: t.Repo, GitProvider: api.Some(t.GitProvider), Title: api.Some(t.Title)}) +
			fmt.Sprintf(" It was asked for in issue #%d, which says more: read it first, with read_issue.", t.IssueNumber)
	}
	return fmt.Sprintf("You are working on issue #%d (%q) in the repository %s on %s. Read the issue and its comments with read_issue."+
		" Create a branch, solve the issue, test what you did, commit and push the branch. Then open a %s with %s whose text refers to #%d."+noToken,
		t.IssueNumber, t.Title, t.Repo, w.provider, w.request, w.tool, t.IssueNumber, w.provider)
}

// opening is what the agent is told of a request before it is told what to do.
func (w words) opening(t api.SuggestedTask) string {
	fetch := "Fetch that branch with git, check it out"
	if w.ref != "" {
		fetch = fmt.Sprintf("Fetch that branch with git, check it out (git fetch origin "+w.ref+" has the same commits if it lives in a fork)", t.IssueNumber)
	}
	return fmt.Sprintf("You are working on %s %s%d (%q) in the repository %s on %s. Look up its details with read_issue (number %d, kind pull_request):"+
		" its text, its branch, its base branch, its checks and what was said about it. %s, and read the changes against the base branch."+noToken,
		w.request, w.mark, t.IssueNumber, t.Title, t.Repo, w.provider, t.IssueNumber, fetch, w.provider)
}

// MicroagentPrompt is what the agent is told when somebody wants a microagent.
func MicroagentPrompt(m api.CreateMicroagent) string {
	w := speak(m.GitProvider.Value)
	about := "useful knowledge about this repository"
	if title := strings.TrimSpace(m.Title.Value); title != "" {
		about = fmt.Sprintf("%q", title)
	}
	return fmt.Sprintf("Write a microagent for the repository %s about %s. Look at the repository first. Put the text into a new Markdown file under %s/."+
		" It begins with a front matter between two lines of three dashes: name, and triggers, a list of the words that shall call it up; without triggers it is always read."+
		" Below it, say briefly what somebody who works here must know: commands, places, conventions, traps. Commit it to a branch of its own, push that,"+
		" and open a %s with %s."+noToken, m.Repo, about, MicroagentFolder(m.Repo), w.request, w.tool, w.provider)
}

// MicroagentFolder is where a repository keeps its microagents. Those that hold
// for all repositories of an organisation are in one of its own.
func MicroagentFolder(repository string) string {
	switch path.Base(repository) {
	case ".openhands", "openhands-config":
		return "microagents"
	}
	return ".openhands/microagents"
}
