package bitbucket

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// centerRequest is a pull request in Data Center's API.
type centerRequest struct {
	ID          int
	Title       string
	Description string
	State       string // OPEN, MERGED, DECLINED
	Draft       bool
	From        centerRef `json:"fromRef"`
	To          centerRef `json:"toRef"`
	Author      struct{ User centerUser }
	Reviewers   []struct{ Status string }
	Properties  struct {
		OpenTasks *int `json:"openTaskCount"`
		Comments  *int `json:"commentCount"`
	}
	Links struct{ Self []struct{ Href string } }
}

type centerRef struct {
	ID           string
	DisplayID    string
	LatestCommit string
	Repository   centerRepository
}

func (r centerRequest) url() string {
	if len(r.Links.Self) == 0 {
		return ""
	}
	return r.Links.Self[0].Href
}

func (r centerRequest) state() string {
	if r.State == "DECLINED" {
		return "closed"
	}
	return strings.ToLower(r.State)
}

func (r centerRequest) request() gitprovider.Request {
	return gitprovider.Request{
		Number: r.ID, URL: r.url(), Title: r.Title, State: r.state(), Draft: r.Draft, Source: r.From.DisplayID, Target: r.To.DisplayID,
		Fork: r.From.Repository.ID != r.To.Repository.ID,
	}
}

// Propose opens a pull request; a Data Center has no labels for them.
func (d *dataCenter) Propose(ctx context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	at, err := d.below(p.Repository, "pull-requests")
	if err != nil {
		return gitprovider.Request{}, err
	}
	if p.Target == "" {
		r, err := d.Repository(ctx, p.Repository)
		if err != nil {
			return gitprovider.Request{}, err
		}
		p.Target = r.MainBranch
	}
	key, slug, _ := strings.Cut(p.Repository, "/")
	ref := func(branch string) any {
		return map[string]any{"id": "refs/heads/" + branch, "repository": map[string]any{"slug": slug, "project": map[string]string{"key": key}}}
	}
	body := map[string]any{"title": p.Title, "description": p.Body, "fromRef": ref(p.Source), "toRef": ref(p.Target)}
	if p.Draft { // not supported before version 8.18
		body["draft"] = true
	}
	var r centerRequest
	_, err = d.Post(ctx, at, body, &r)
	return r.request(), err
}

// Proposed finds the open pull request between two branches; to any branch if target is "".
func (d *dataCenter) Proposed(ctx context.Context, repository, source, target string) (gitprovider.Request, error) {
	at, err := d.below(repository, "pull-requests")
	if err != nil {
		return gitprovider.Request{}, err
	}
	query := url.Values{"state": {"OPEN"}, "direction": {"OUTGOING"}, "at": {"refs/heads/" + source}}
	found, _, err := centerList[centerRequest](ctx, d, at, query, mostRequests)
	if err != nil {
		return gitprovider.Request{}, err
	}
	for _, r := range found {
		if r.From.DisplayID == source && (target == "" || r.To.DisplayID == target) && r.From.Repository.ID == r.To.Repository.ID {
			return r.request(), nil
		}
	}
	return gitprovider.Request{}, d.Fail(gitprovider.NotFound, "")
}

func (d *dataCenter) Request(ctx context.Context, repository string, number int) (gitprovider.Request, error) {
	at, err := d.below(repository, "pull-requests", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Request{}, err
	}
	var r centerRequest
	if _, err := d.Get(ctx, at, nil, &r); err != nil {
		return gitprovider.Request{}, err
	}
	out := r.request()
	if out.State != "open" {
		return out, nil
	}
	out.Mergeable, err = d.mergeable(ctx, at)
	if err := ifSeen(err); err != nil {
		return gitprovider.Request{}, err
	}
	return out, nil
}

// mergeable reports whether there are no conflicts. canMerge would also consider missing
// approvals.
func (d *dataCenter) mergeable(ctx context.Context, request string) (*bool, error) {
	var merge struct {
		CanMerge   bool
		Conflicted bool
		Outcome    string // CLEAN, CONFLICTED, UNKNOWN; not set by older versions
	}
	if _, err := d.Get(ctx, request+"/merge", nil, &merge); err != nil {
		return nil, err
	}
	clean := !merge.Conflicted
	if clean && !merge.CanMerge && merge.Outcome == "UNKNOWN" {
		return nil, nil
	}
	return &clean, nil
}

// centerActivity is an event of a pull request, newest first.
type centerActivity struct {
	Action  string
	Comment *centerComment
	Anchor  *centerAnchor `json:"commentAnchor"`
}

// centerAnchor is the line of a comment.
type centerAnchor struct {
	Path string
	Line int
}

// centerComment is a comment with its replies.
type centerComment struct {
	ID       int64
	Text     string
	Author   centerUser
	Resolved bool   `json:"threadResolved"`
	State    string // RESOLVED of a task
	Comments []centerComment
}

// lines returns a comment and its replies, depth first.
func (k centerComment) lines(place string) []string {
	out := []string{k.Author.Name + ": " + place + k.Text}
	for _, answer := range k.Comments {
		out = append(out, answer.lines(place)...)
	}
	return out
}

func (d *dataCenter) threads(ctx context.Context, request string, most int) ([]centerActivity, error) {
	all, _, err := centerList[centerActivity](ctx, d, request+"/activities", nil, most)
	return slices.DeleteFunc(all, func(a centerActivity) bool { return a.Action != "COMMENTED" || a.Comment == nil }), err
}

func (d *dataCenter) Discussion(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	at, err := d.below(repository, "pull-requests", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Issue{}, err
	}
	var r centerRequest
	if _, err := d.Get(ctx, at, nil, &r); err != nil {
		return gitprovider.Issue{}, err
	}
	threads, err := d.threads(ctx, at, mostAtOnce)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	out := gitprovider.Issue{Number: r.ID, Title: r.Title, Body: r.Description, URL: r.url(), Author: r.Author.User.Name, State: r.state()}
	seen := map[int64]bool{}
	for _, thread := range slices.Backward(threads) {
		if seen[thread.Comment.ID] { // a thread is repeated for each change
			continue
		}
		seen[thread.Comment.ID] = true
		place := ""
		if thread.Anchor != nil {
			place = where(thread.Anchor.Path, thread.Anchor.Line)
		}
		out.Comments = append(out.Comments, thread.Comment.lines(place)...)
	}
	out.Checks, err = d.checks(ctx, r.From.LatestCommit)
	if err := ifSeen(err); err != nil {
		return gitprovider.Issue{}, err
	}
	return out, nil
}

// checks returns the build results of a commit.
func (d *dataCenter) checks(ctx context.Context, commit string) ([]string, error) {
	var page centerPage[struct{ Key, Name, State string }]
	r := call.Request{Path: call.Path("commits", commit), Query: url.Values{"limit": {"100"}}, Elsewhere: d.builds()}
	if _, err := d.Do(ctx, r, &page); err != nil {
		return nil, err
	}
	var checks []string
	for _, b := range page.Values {
		checks = append(checks, cmp.Or(b.Name, b.Key)+": "+b.State)
	}
	failedFirst(checks)
	return checks, nil
}

// Issue always returns NotFound: a Data Center has no issue tracker.
func (d *dataCenter) Issue(context.Context, string, int) (gitprovider.Issue, error) {
	return gitprovider.Issue{}, d.Fail(gitprovider.Unsupported, "")
}

func (d *dataCenter) Comment(ctx context.Context, repository string, number int, pull bool, text string) error {
	if !pull {
		return d.Fail(gitprovider.Unsupported, "")
	}
	at, err := d.below(repository, "pull-requests", strconv.Itoa(number), "comments")
	if err != nil {
		return err
	}
	_, err = d.Post(ctx, at, map[string]string{"text": text}, nil)
	return err
}
