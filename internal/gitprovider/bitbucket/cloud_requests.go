package bitbucket

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
)

// cloudRequest is a pull request in Bitbucket Cloud's API.
type cloudRequest struct {
	ID           int
	Title        string
	Description  string
	State        string // OPEN, MERGED, DECLINED, SUPERSEDED
	Draft        bool
	CreatedOn    time.Time `json:"created_on"`
	Source       cloudEnd
	Destination  cloudEnd
	Links        struct{ HTML struct{ Href string } }
	Author       cloudUser
	CommentCount int `json:"comment_count"`
	TaskCount    int `json:"task_count"`
	Participants []struct{ State string }
}

type cloudEnd struct {
	Branch     struct{ Name string }
	Repository struct {
		FullName string `json:"full_name"`
	}
}

func (r cloudRequest) request() gitprovider.Request {
	return gitprovider.Request{
		Number: r.ID, URL: r.Links.HTML.Href, Title: r.Title, State: cloudState(r.State), Draft: r.Draft,
		Source: r.Source.Branch.Name, Target: r.Destination.Branch.Name,
		Fork: r.Source.Repository.FullName != r.Destination.Repository.FullName,
	}
}

// cloudState translates states of pull requests and issues.
func cloudState(s string) string {
	switch strings.ToLower(s) {
	case "":
		return ""
	case "open", "new", "submitted", "on hold":
		return "open"
	case "merged":
		return "merged"
	}
	return "closed"
}

// Propose opens a pull request; Bitbucket has no labels for them.
func (c *cloud) Propose(ctx context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	at, err := c.below(p.Repository, "pullrequests")
	if err != nil {
		return gitprovider.Request{}, err
	}
	branch := func(name string) any { return map[string]any{"branch": map[string]string{"name": name}} }
	body := map[string]any{"title": p.Title, "description": p.Body, "source": branch(p.Source), "draft": p.Draft}
	if p.Target != "" { // the default is the main branch
		body["destination"] = branch(p.Target)
	}
	var r cloudRequest
	_, err = c.Post(ctx, at, body, &r)
	return r.request(), err
}

// Proposed finds the open pull request between two branches; to any branch if target is "".
func (c *cloud) Proposed(ctx context.Context, repository, source, target string) (gitprovider.Request, error) {
	at, err := c.below(repository, "pullrequests")
	if err != nil {
		return gitprovider.Request{}, err
	}
	filter := `state = "OPEN" AND source.branch.name = ` + quoted(source)
	if target != "" {
		filter += " AND destination.branch.name = " + quoted(target)
	}
	found, _, err := cloudList[cloudRequest](ctx, c, at, url.Values{"q": {filter}}, mostRequests)
	if err != nil {
		return gitprovider.Request{}, err
	}
	for _, r := range found {
		if r.Source.Repository.FullName == r.Destination.Repository.FullName { // a fork may have a branch of the same name
			return r.request(), nil
		}
	}
	return gitprovider.Request{}, c.Fail(gitprovider.NotFound, "")
}

func (c *cloud) Request(ctx context.Context, repository string, number int) (gitprovider.Request, error) {
	at, err := c.below(repository, "pullrequests", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Request{}, err
	}
	var r cloudRequest
	if _, err := c.Get(ctx, at, nil, &r); err != nil {
		return gitprovider.Request{}, err
	}
	out := r.request()
	if out.State != "open" {
		return out, nil
	}
	conflict, err := c.conflicts(ctx, at)
	switch {
	case err == nil:
		clean := !conflict
		out.Mergeable = &clean
	case !hidden(err):
		return gitprovider.Request{}, err
	}
	return out, nil
}

// conflicts reports whether a pull request has merge conflicts. Only the list of changed
// files has this information.
func (c *cloud) conflicts(ctx context.Context, request string) (bool, error) {
	type change struct{ Status string }
	changes, _, err := cloudList[change](ctx, c, request+"/diffstat", nil, 500)
	for _, one := range changes {
		if strings.Contains(one.Status, "conflict") || one.Status == "local deleted" || one.Status == "remote deleted" {
			return true, nil
		}
	}
	return false, err
}

// cloudComment is a comment on an issue or a pull request.
type cloudComment struct {
	Content struct{ Raw string }
	User    cloudUser
	Deleted bool
	Inline  *struct {
		Path     string
		From, To int // the line before and after the change, or 0
	}
	Parent     *struct{ ID int }
	Resolution *struct{ Type string } // of a resolved thread
}

func (k cloudComment) String() string {
	place := ""
	if k.Inline != nil {
		place = where(k.Inline.Path, cmp.Or(k.Inline.To, k.Inline.From))
	}
	return k.User.login() + ": " + place + k.Content.Raw
}

// said returns the comments, oldest first. A change of an issue is a comment without
// text.
func (c *cloud) said(ctx context.Context, at string) ([]string, error) {
	all, _, err := cloudList[cloudComment](ctx, c, at+"/comments", url.Values{"sort": {"created_on"}}, 100*mostPages)
	var out []string
	for _, k := range all {
		if !k.Deleted && k.Content.Raw != "" {
			out = append(out, k.String())
		}
	}
	return out, err
}

func (c *cloud) Discussion(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	at, err := c.below(repository, "pullrequests", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Issue{}, err
	}
	var r cloudRequest
	if _, err := c.Get(ctx, at, nil, &r); err != nil {
		return gitprovider.Issue{}, err
	}
	out := gitprovider.Issue{
		Number: r.ID, Title: r.Title, Body: r.Description, URL: r.Links.HTML.Href, Author: r.Author.login(), State: cloudState(r.State),
	}
	if out.Comments, err = c.said(ctx, at); err != nil {
		return gitprovider.Issue{}, err
	}
	builds, err := c.builds(ctx, at)
	if ifSeen(err) != nil {
		return gitprovider.Issue{}, err
	}
	for _, b := range builds {
		out.Checks = append(out.Checks, cmp.Or(b.Name, b.Key)+": "+b.State)
	}
	failedFirst(out.Checks)
	return out, nil
}

// cloudBuild is the status of a check.
type cloudBuild struct{ Key, Name, State string }

func (c *cloud) builds(ctx context.Context, request string) ([]cloudBuild, error) {
	builds, _, err := cloudList[cloudBuild](ctx, c, request+"/statuses", nil, 100)
	return builds, err
}

// Issue returns NotFound if a repository has no issue tracker.
func (c *cloud) Issue(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	at, err := c.below(repository, "issues", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Issue{}, err
	}
	var i struct {
		ID       int
		Title    string
		State    string
		Content  struct{ Raw string }
		Reporter cloudUser
		Links    struct{ HTML struct{ Href string } }
	}
	if _, err := c.Get(ctx, at, nil, &i); err != nil {
		return gitprovider.Issue{}, err
	}
	out := gitprovider.Issue{
		Number: i.ID, Title: i.Title, Body: i.Content.Raw, URL: i.Links.HTML.Href, Author: i.Reporter.login(), State: cloudState(i.State),
	}
	if out.Comments, err = c.said(ctx, at); err != nil {
		return gitprovider.Issue{}, err
	}
	return out, nil
}

func (c *cloud) Comment(ctx context.Context, repository string, number int, pull bool, text string) error {
	kind := "issues"
	if pull {
		kind = "pullrequests"
	}
	at, err := c.below(repository, kind, strconv.Itoa(number), "comments")
	if err != nil {
		return err
	}
	_, err = c.Post(ctx, at, map[string]any{"content": map[string]string{"raw": text}}, nil)
	return err
}
