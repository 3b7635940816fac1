package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

type person struct {
	Login string `json:"login"`
}

// name returns the user name, or "ghost" for a deleted account.
func (p *person) name() string {
	if p == nil || p.Login == "" {
		return "ghost"
	}
	return p.Login
}

// remark is a comment, a review, or a comment on a line.
type remark struct {
	User        *person   `json:"user"`
	Body        string    `json:"body"`
	CreatedAt   time.Time `json:"created_at"`
	SubmittedAt time.Time `json:"submitted_at"` // of a review
	Path        string    `json:"path"`
	Line        int       `json:"line"` // null once the line is gone
	Original    int       `json:"original_line"`
}

func (r remark) at() time.Time {
	if r.CreatedAt.IsZero() {
		return r.SubmittedAt
	}
	return r.CreatedAt
}

func (r remark) text() string {
	where := ""
	if r.Path != "" {
		line := r.Line
		if line == 0 {
			line = r.Original
		}
		where = fmt.Sprintf("%s:%d: ", r.Path, line)
	}
	return r.User.name() + ": " + where + r.Body
}

// said returns the comments of several lists, oldest first.
func (g *github) said(ctx context.Context, paths ...string) ([]string, error) {
	var all []remark
	for _, path := range paths {
		err := call.Each(ctx, g.Caller, call.Request{Path: path, Query: call.PageQuery(1, 100)}, maxPages, func(page []remark) bool {
			all = append(all, page...)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b remark) int { return a.at().Compare(b.at()) })
	var texts []string
	for _, r := range all {
		if r.Body != "" { // an approval may have no text
			texts = append(texts, r.text())
		}
	}
	return texts, nil
}

func (g *github) Issue(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	path, err := g.repository(repository, "issues", strconv.Itoa(number))
	if err != nil {
		return gitprovider.Issue{}, err
	}
	var i struct {
		Number int     `json:"number"`
		Title  string  `json:"title"`
		Body   string  `json:"body"`
		URL    string  `json:"html_url"`
		State  string  `json:"state"`
		User   *person `json:"user"`
	}
	if _, err := g.Get(ctx, path, nil, &i); err != nil {
		return gitprovider.Issue{}, err
	}
	comments, err := g.said(ctx, path+"/comments")
	if err != nil {
		return gitprovider.Issue{}, err
	}
	return gitprovider.Issue{
		Number: i.Number, Title: i.Title, Body: i.Body, URL: i.URL, Author: i.User.name(), State: i.State, Comments: comments,
	}, nil
}

func (g *github) Discussion(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	p, err := g.pull(ctx, repository, number)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	base, err := g.repository(repository)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	id := strconv.Itoa(number)
	comments, err := g.said(ctx, base+"/issues/"+id+"/comments", base+"/pulls/"+id+"/reviews", base+"/pulls/"+id+"/comments")
	if err != nil {
		return gitprovider.Issue{}, err
	}
	checks, err := g.checks(ctx, base+call.Path("commits", p.Head.SHA))
	if err != nil {
		return gitprovider.Issue{}, err
	}
	return gitprovider.Issue{
		Number: p.Number, Title: p.Title, Body: p.Body, URL: p.URL, Author: p.User.name(), State: p.state(), Comments: comments, Checks: checks,
	}, nil
}

// checks returns check runs and commit statuses. Those that the token may not see are
// skipped.
func (g *github) checks(ctx context.Context, commit string) ([]string, error) {
	var runs struct {
		Runs []struct {
			Name       string `json:"name"`
			Status     string `json:"status"`
			Conclusion string `json:"conclusion"` // null until it is completed
		} `json:"check_runs"`
	}
	var statuses struct {
		Statuses []struct {
			Context string `json:"context"`
			State   string `json:"state"`
		} `json:"statuses"`
	}
	if _, err := g.Get(ctx, commit+"/check-runs", call.PageQuery(1, 100), &runs); err != nil && !hidden(err) {
		return nil, err
	}
	if _, err := g.Get(ctx, commit+"/status", call.PageQuery(1, 100), &statuses); err != nil && !hidden(err) {
		return nil, err
	}
	var failed, others []string
	add := func(name, state string) {
		if slices.Contains([]string{"failure", "error", "timed_out", "cancelled", "action_required", "startup_failure"}, state) {
			failed = append(failed, name+": "+state)
		} else {
			others = append(others, name+": "+state)
		}
	}
	for _, r := range runs.Runs {
		state := r.Conclusion
		if state == "" {
			state = r.Status
		}
		add(r.Name, state)
	}
	for _, s := range statuses.Statuses {
		add(s.Context, s.State)
	}
	return append(failed, others...), nil
}

func hidden(err error) bool {
	reason := gitprovider.ReasonOf(err)
	return reason == gitprovider.Scope || reason == gitprovider.NotFound
}

// Comment ignores pull: a pull request is an issue here.
func (g *github) Comment(ctx context.Context, repository string, number int, _ bool, text string) error {
	path, err := g.repository(repository, "issues", strconv.Itoa(number), "comments")
	if err != nil {
		return err
	}
	_, err = g.Post(ctx, path, map[string]string{"body": text}, nil)
	return err
}
