package gitprovider

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"deckhand/api"
)

// noToken explains to the agent why it needs no token.
const noToken = " Git reaches the repository by itself, for reading and for pushing; there is no token in the sandbox, so do not look for one and do not call the API of %s with commands: use your tools."

// TaskPrompt returns the prompt for a suggested task.
func TaskPrompt(t api.SuggestedTask) string {
	w := Describe(t.GitProvider)
	switch t.TaskType {
	case "MERGE_CONFLICTS":
		return w.opening(t) + fmt.Sprintf(" Merge the base branch into it, find the conflicts, and resolve them; where the right resolution is not clear,"+
			" read the history of the lines in conflict. Make sure that the tests pass, commit, and push to the branch of the %s.", w.Terms.Request)
	case "FAILING_CHECKS":
		return w.opening(t) + fmt.Sprintf(" Find out which of the %s fail on the newest commit: read_issue lists them, and their definition is in the repository. Reproduce the failure,"+
			" fix it, commit and push to the branch of the %s. Then wait until the checks ran again, looking about every 30 seconds with read_issue, and repeat until all pass.", w.Terms.Checks, w.Terms.Request)
	case "UNRESOLVED_COMMENTS":
		return w.opening(t) + fmt.Sprintf(" Read all remarks of reviewers that read_issue shows, find those that were not dealt with, deal with each of them, commit,"+
			" and push to the branch of the %s. Where a remark needs an answer and not a change, give it with comment_on_issue.", w.Terms.Request)
	case "OPEN_PR":
		return w.opening(t) + fmt.Sprintf(" Review the state of this %s: finish what is missing, make its checks pass, push to its branch,"+
			" and say in a comment with comment_on_issue what you did and what remains.", w.Terms.Short)
	case "CREATE_MICROAGENT":
		return MicroagentPrompt(api.CreateMicroagent{Repo: t.Repo, GitProvider: api.Some(t.GitProvider), Title: api.Some(t.Title)}) +
			fmt.Sprintf(" It was asked for in issue #%d, which says more: read it first, with read_issue.", t.IssueNumber)
	}
	return fmt.Sprintf("You are working on issue #%d (%q) in the repository %s on %s. Read the issue and its comments with read_issue."+
		" Create a branch, solve the issue, test what you did, commit and push the branch. Then open a %s with %s whose text refers to #%d."+noToken,
		t.IssueNumber, t.Title, t.Repo, w.Phrase, w.Terms.Request, w.Tool, t.IssueNumber, w.Phrase)
}

// opening returns the introduction of a prompt about a pull request.
func (w Descriptor) opening(t api.SuggestedTask) string {
	fetch := "Fetch that branch with git, check it out"
	if w.Terms.Ref != "" {
		fetch = fmt.Sprintf("Fetch that branch with git, check it out (git fetch origin "+w.Terms.Ref+" has the same commits if it lives in a fork)", t.IssueNumber)
	}
	return fmt.Sprintf("You are working on %s %s%d (%q) in the repository %s on %s. Look up its details with read_issue (number %d, kind pull_request):"+
		" its text, its branch, its base branch, its checks and what was said about it. %s, and read the changes against the base branch."+noToken,
		w.Terms.Request, w.Terms.Mark, t.IssueNumber, t.Title, t.Repo, w.Phrase, t.IssueNumber, fetch, w.Phrase)
}

// MicroagentPrompt returns the prompt for a new microagent.
func MicroagentPrompt(m api.CreateMicroagent) string {
	w := Describe(m.GitProvider.Value)
	about := "useful knowledge about this repository"
	if title := strings.TrimSpace(m.Title.Value); title != "" {
		about = fmt.Sprintf("%q", title)
	}
	return fmt.Sprintf("Write a microagent for the repository %s about %s. Look at the repository first. Put the text into a new Markdown file under %s/."+
		" It begins with a front matter between two lines of three dashes: name, and triggers, a list of the words that activate it; without triggers it is always read."+
		" Below it, say briefly what a contributor must know: commands, places, conventions, traps. Commit it to a branch of its own, push that,"+
		" and open a %s with %s."+noToken, m.Repo, about, MicroagentFolder(m.Repo), w.Terms.Request, w.Tool, w.Phrase)
}

// MicroagentFolder returns the microagents folder of a repository. Those of a whole
// organisation are in a separate repository.
func MicroagentFolder(repository string) string {
	if slices.ContainsFunc(registered, func(d Descriptor) bool { return d.OrgRepository == path.Base(repository) }) {
		return "microagents"
	}
	return ".openhands/microagents"
}
