package propose

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
	"deckhand/internal/tool"
)

//go:embed read_issue.md
var readText string

//go:embed read_issue.json
var readSchema []byte

//go:embed comment_on_issue.md
var commentText string

//go:embed comment_on_issue.json
var commentSchema []byte

// place says which issue is meant.
type place struct {
	Number   int    `json:"number"`
	Kind     string `json:"kind"`
	RepoName string `json:"repo_name"`
	Provider string `json:"provider"`
}

// pull is true for a pull or merge request.
func (p place) pull() bool { return p.Kind == "pull_request" }

// settle fills in what was left out, or says what is missing.
func (d base) settle(p *place) (wrong string) {
	p.RepoName = cmp.Or(p.RepoName, d.conv.Repository)
	p.Provider = d.providerOf(p.Provider)
	switch {
	case p.RepoName == "":
		return "This conversation has no repository: say with repo_name which one is meant, as owner/name."
	case !gitprovider.ValidRepository(p.RepoName):
		return fmt.Sprintf("%q is not the name of a repository; it is written as owner/name.", p.RepoName)
	case p.Provider == "":
		return "Say with provider where the repository lives: " + strings.Join(d.conv.Stored, ", ") + "."
	case !slices.Contains(d.conv.Stored, p.Provider):
		return fmt.Sprintf("No token is stored for %s. The person can add one in the settings. There are tokens for: %s.", p.Provider, strings.Join(d.conv.Stored, ", "))
	case p.Number < 1:
		return "number is the one it has in the repository, from 1."
	}
	return ""
}

// providerOf is where a repository is taken to live: where it was said, where
// the conversation's does, or the only place that there is a token for.
func (d base) providerOf(said string) string {
	switch {
	case said != "":
		return said
	case d.conv.Provider != "":
		return d.conv.Provider
	case len(d.conv.Stored) == 1:
		return d.conv.Stored[0]
	}
	return ""
}

// reader implements tool.Tool.
type reader struct{ base }

// Spec implements tool.Tool.
func (*reader) Spec() tool.Spec {
	return tool.Spec{Name: ReadName, Description: strings.TrimSpace(readText), Schema: readSchema, ReadOnly: true}
}

// Run implements tool.Tool.
func (t *reader) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var at place
	if err := call.Into(&at); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	if wrong := t.settle(&at); wrong != "" {
		return tool.Failf("%s", wrong), nil
	}
	return t.ask(ctx, call, at.Provider, func(ctx context.Context, forge gitprovider.Provider) (tool.Result, error) {
		if !at.pull() {
			issue, err := forge.Issue(ctx, at.RepoName, at.Number)
			return tool.Result{Text: written("Issue", at, issue, "")}, err
		}
		request, err := forge.Request(ctx, at.RepoName, at.Number)
		if err != nil {
			return tool.Result{}, err
		}
		said, err := forge.Discussion(ctx, at.RepoName, at.Number)
		said.State = cmp.Or(request.State, said.State)
		return tool.Result{Text: written("Request", at, said, branches(request))}, err
	})
}

// branches says what a request would merge, and whether it can.
func branches(r gitprovider.Request) string {
	text := fmt.Sprintf("It asks to merge the branch %s into %s.", r.Source, r.Target)
	if r.Draft {
		text += " It is a draft."
	}
	if r.Mergeable != nil && !*r.Mergeable {
		text += " It cannot be merged as it is: there are conflicts, or something blocks it."
	}
	return text + "\n"
}

// maxSaid is how many characters of one text are shown, maxComments how many
// comments: the newest.
const maxSaid, maxComments = 8000, 100

// written is an issue in words.
func written(what string, at place, i gitprovider.Issue, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s #%d in %s (%s): %s\n", what, at.Number, at.RepoName, cmp.Or(i.State, "state unknown"), i.Title)
	if i.Author != "" {
		fmt.Fprintf(&b, "By %s. ", i.Author)
	}
	fmt.Fprintf(&b, "%s\n%s\n%s\n", i.URL, more, cmp.Or(strings.TrimSpace(clip.Runes(i.Body, maxSaid)), "[no text]"))
	if len(i.Checks) > 0 {
		fmt.Fprintf(&b, "\nChecks of the newest commit:\n- %s\n", clip.Runes(strings.Join(i.Checks, "\n- "), maxSaid))
	}
	comments := i.Comments
	if left := len(comments) - maxComments; left > 0 {
		fmt.Fprintf(&b, "\n[%d older comments are left out]\n", left)
		comments = comments[left:]
	}
	for n, c := range comments {
		fmt.Fprintf(&b, "\n--- Comment %d of %d\n%s\n", len(i.Comments)-len(comments)+n+1, len(i.Comments), strings.TrimSpace(clip.Runes(c, maxSaid)))
	}
	return strings.TrimSpace(b.String())
}

// commenter implements tool.Tool.
type commenter struct{ base }

// Spec implements tool.Tool.
func (t *commenter) Spec() tool.Spec {
	return tool.Spec{Name: CommentName, Description: strings.TrimSpace(commentText), Schema: commentSchema, Wary: func(args json.RawMessage) string {
		name, provider := repositoryOf(args)
		name = cmp.Or(name, t.conv.Repository)
		return t.wary(t.providerOf(provider), name)
	}}
}

// Run implements tool.Tool.
func (t *commenter) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a struct {
		place
		Text string `json:"text"`
	}
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	a.Text = strings.TrimSpace(a.Text)
	if wrong := t.settle(&a.place); wrong != "" {
		return tool.Failf("%s", wrong), nil
	}
	if a.Text == "" || clip.Runes(a.Text, maxText) != a.Text {
		return tool.Failf("text is a comment of 1 to %d characters.", maxText), nil
	}
	if call.Again {
		// It may stand there already, and nothing tells ours from another with the same words.
		return tool.Result{Unknown: true, Text: "The server was restarted during this call, so it is unknown whether the comment was written. Read the issue before you write it again."}, nil
	}
	return t.ask(ctx, call, a.Provider, func(ctx context.Context, forge gitprovider.Provider) (tool.Result, error) {
		// Signed, so that the agent never answers itself where comments start work.
		err := forge.Comment(ctx, a.RepoName, a.Number, a.pull(), gitprovider.Sign(a.Text, "agent"))
		return tool.Result{Text: fmt.Sprintf("The comment was written below #%d of %s.", a.Number, a.RepoName)}, err
	})
}
