package propose

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

//go:embed create_pr.md
var pullText string

//go:embed create_mr.md
var mergeText string

//go:embed create_pr.json
var pullSchema []byte

//go:embed create_mr.json
var mergeSchema []byte

//go:embed create_bitbucket_pr.json
var bitbucketSchema []byte

// kind is one of the tools that open pull requests. There is one for each shape
// of arguments that models and older clients know.
type kind struct {
	name   string
	text   string
	schema []byte
	drafts bool // it has a word for drafts
}

// providers are those it serves: they name it in their descriptors.
func (k kind) providers() (names []string) {
	for _, d := range gitprovider.All() {
		if d.Tool == k.name {
			names = append(names, d.Name)
		}
	}
	return names
}

// speaks is what the model is told of the providers.
func (k kind) speaks() string {
	var titles []string
	suffix := ""
	for _, d := range gitprovider.All() {
		switch {
		case d.Tool != k.name:
		case d.Generic:
			suffix = ", or the organisation's own git host"
		default:
			titles = append(titles, d.Title)
		}
	}
	return strings.Join(titles, " or ") + suffix
}

// kinds in the order in which models are told of them. A git host behind an
// organisation's sign-on may be of any kind; the general tool serves it.
var kinds = []kind{
	{"create_pr", pullText, pullSchema, true},
	{"create_mr", mergeText, mergeSchema, false},
	{"create_bitbucket_pr", pullText, bitbucketSchema, false},
	{"create_gitea_pr", pullText, pullSchema, true},
}

func (k kind) spec() tool.Spec {
	return tool.Spec{Name: k.name, Description: strings.TrimSpace(strings.ReplaceAll(k.text, "{{provider}}", k.speaks())), Schema: k.schema}
}

// opener implements tool.Tool.
type opener struct {
	base
	kind
}

// Spec implements tool.Tool.
func (t *opener) Spec() tool.Spec {
	s := t.spec()
	s.Wary = func(args json.RawMessage) string {
		name, _ := repositoryOf(args)
		return t.wary(t.provider(), name)
	}
	return s
}

// provider is where repositories are taken to live: where the conversation's
// does, if this tool serves it, else the first place that there is a token for.
func (t *opener) provider() string {
	has := func(p string) bool { return slices.Contains(t.conv.Stored, p) }
	if slices.Contains(t.providers(), t.conv.Provider) && has(t.conv.Provider) {
		return t.conv.Provider
	}
	if i := slices.IndexFunc(t.providers(), has); i >= 0 {
		return t.providers()[i]
	}
	return t.providers()[0]
}

type openArgs struct {
	RepoName    string   `json:"repo_name"`
	ID          textOrID `json:"id"`
	Source      string   `json:"source_branch"`
	Target      string   `json:"target_branch"`
	Title       string   `json:"title"`
	Body        string   `json:"body"`
	Description string   `json:"description"`
	Draft       *bool    `json:"draft"`
	Labels      []string `json:"labels"`
}

// maxTitle and maxText are what all providers take.
const maxTitle, maxText = 255, 60_000

// Run implements tool.Tool.
func (t *opener) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a openArgs
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	p := gitprovider.Proposal{Repository: cmp.Or(a.RepoName, string(a.ID)), Title: strings.TrimSpace(a.Title), Body: cmp.Or(a.Body, a.Description),
		Source: a.Source, Target: a.Target, Labels: a.Labels, Draft: t.drafts && (a.Draft == nil || *a.Draft)}
	if wrong := check(p); wrong != "" {
		return tool.Failf("%s", wrong), nil
	}
	provider := t.provider()
	if other := t.elsewhere(p.Repository); other != "" {
		return tool.Failf("%s", other), nil
	}
	p.Body = t.signed(p.Body)
	return t.ask(ctx, call, provider, func(within context.Context, forge gitprovider.Provider) (tool.Result, error) {
		r, known, err := t.open(ctx, within, forge, provider, p, call.Again)
		if gitprovider.ReasonOf(err) == gitprovider.NotFound {
			return tool.Failf("%s", missing(err, p)), nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		return opened(provider, p, r, known), nil
	})
}

// missing is what to say when something is not found: providers do not say what.
func missing(err error, p gitprovider.Proposal) string {
	return fmt.Sprintf("%s Either the branch %s was not pushed, or there is no branch %s, or no repository %s.", err, p.Source, p.Target, p.Repository)
}

// open opens a pull request within a time and records it.
func (d base) open(ctx, within context.Context, forge gitprovider.Provider, provider string, p gitprovider.Proposal, again bool) (r gitprovider.Request, known bool, err error) {
	r, known, err = propose(within, forge, p, again)
	if err != nil {
		return r, known, err
	}
	// The pull request exists now, even if the caller has left.
	return r, known, d.record(context.WithoutCancel(ctx), session.RequestOpened{Provider: provider, Repository: p.Repository, Number: r.Number, URL: r.URL,
		Title: cmp.Or(clip.Runes(r.Title, maxTitle), p.Title), Source: p.Source, Target: p.Target})
}

// Opened is a pull request that a person opened.
type Opened struct {
	gitprovider.Request
	// Known means that it was open before.
	Known bool
	// Unreviewed is why no review could be requested; "" if all were.
	Unreviewed string
}

// InvalidError says what is wrong with a proposal.
type InvalidError struct{ Text string }

func (e *InvalidError) Error() string { return e.Text }

// OpenFor opens a pull request for a person, in the repository of a conversation, and asks for reviews.
func (o *Deps) OpenFor(ctx context.Context, user string, c Conversation, p gitprovider.Proposal, reviewers []string) (Opened, error) {
	d := base{o, c}
	p.Repository, p.Title = c.Repository, strings.TrimSpace(p.Title)
	if wrong := check(p); wrong != "" {
		return Opened{}, &InvalidError{wrong}
	}
	p.Body = d.signed(p.Body)
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	forge, err := o.Open(within, user, c.Provider)
	if err != nil {
		return Opened{}, err
	}
	r, known, err := d.open(ctx, within, forge, c.Provider, p, false)
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return Opened{}, &InvalidError{missing(err, p)}
	}
	if err != nil {
		return Opened{}, err
	}
	out := Opened{Request: r, Known: known}
	if len(reviewers) > 0 {
		if err := gitprovider.AskReview(within, forge, p.Repository, r.Number, reviewers); err != nil {
			out.Unreviewed = err.Error()
		}
	}
	return out, nil
}

// check returns what is wrong with a proposal, before any request is made.
func check(p gitprovider.Proposal) string {
	digits := p.Repository != "" && strings.Trim(p.Repository, "0123456789") == ""
	switch {
	case !gitprovider.ValidRepository(p.Repository) && !digits:
		return fmt.Sprintf("%q is not the name of a repository; it is written as owner/name.", p.Repository)
	case !gitprovider.ValidBranch(p.Source):
		return fmt.Sprintf("source_branch %q is not the name of a branch.", p.Source)
	case !gitprovider.ValidBranch(p.Target):
		return fmt.Sprintf("target_branch %q is not the name of a branch.", p.Target)
	case p.Source == p.Target:
		return "source_branch and target_branch are the same. Commit to a branch of your own and push it."
	case p.Title == "" || utf8.RuneCountInString(p.Title) > maxTitle || strings.ContainsAny(p.Title, "\r\n"):
		return fmt.Sprintf("title is one line of at most %d characters.", maxTitle)
	case utf8.RuneCountInString(p.Body) > maxText:
		return fmt.Sprintf("The text has more than %d characters. Say it more briefly.", maxText)
	}
	return ""
}

// elsewhere is what to say when the conversation's own repository is one that
// another of the tools is for.
func (t *opener) elsewhere(repository string) string {
	if !strings.EqualFold(repository, t.conv.Repository) || slices.Contains(t.providers(), t.conv.Provider) {
		return ""
	}
	for _, k := range kinds {
		if slices.Contains(k.providers(), t.conv.Provider) {
			return fmt.Sprintf("%s is on %s: use %s.", repository, k.speaks(), k.name)
		}
	}
	return ""
}

// signed adds where people find the conversation.
func (d base) signed(body string) string {
	if d.conv.ID == "" || d.deps.Page == nil {
		return body
	}
	line := fmt.Sprintf("Made in [this conversation](%s).", d.deps.Page(d.conv.ID))
	return strings.TrimSpace(body + "\n\n" + line)
}

// propose opens a pull request, or finds the one that is open already. A call
// that is made again may have opened it before, and not every provider refuses a second.
func propose(ctx context.Context, forge gitprovider.Provider, p gitprovider.Proposal, again bool) (r gitprovider.Request, known bool, err error) {
	find := func() bool {
		found, err := forge.Proposed(ctx, p.Repository, p.Source, p.Target)
		if err == nil && found.Number > 0 {
			r, known = found, true
		}
		return known
	}
	if again && find() {
		return r, known, nil
	}
	r, err = forge.Propose(ctx, p)
	if gitprovider.ReasonOf(err) == gitprovider.Refused && find() {
		err = nil
	}
	return r, known, err
}

// recordTime bounds writing down what was opened.
const recordTime = 30 * time.Second

// record makes it a part of the conversation, unless that is gone.
func (d base) record(ctx context.Context, r session.RequestOpened) error {
	if d.conv.ID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	_, err := d.deps.Sessions.Update(ctx, d.conv.ID, func(s session.State) ([]session.Payload, error) {
		if !s.Exists() || s.Deleted {
			return nil, nil
		}
		return s.Opened(r)
	})
	return err
}

// opened is what the model is told.
func opened(provider string, p gitprovider.Proposal, r gitprovider.Request, known bool) tool.Result {
	name := gitprovider.RequestName(provider, p.Repository, r.Number)
	if known {
		return tool.Result{Text: fmt.Sprintf("%s from %s to %s is open already: %s\nTo change what it holds, push to %s.", name, p.Source, p.Target, r.URL, p.Source)}
	}
	text := fmt.Sprintf("%s was opened: %s", name, r.URL)
	if r.Draft {
		text += "\nIt is a draft."
	}
	return tool.Result{Text: text}
}
