package github

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
)

// pull is a pull request in the REST API.
type pull struct {
	Number    int        `json:"number"`
	URL       string     `json:"html_url"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	State     string     `json:"state"`
	Draft     bool       `json:"draft"`
	MergedAt  *time.Time `json:"merged_at"`
	Mergeable *bool      `json:"mergeable"` // null until GitHub has checked; absent in lists
	User      *person    `json:"user"`
	Head      struct {
		Ref  string      `json:"ref"`
		SHA  string      `json:"sha"`
		Repo *repository `json:"repo"` // null if the fork is gone
	} `json:"head"`
	Base struct {
		Ref  string      `json:"ref"`
		Repo *repository `json:"repo"`
	} `json:"base"`
}

func (p pull) state() string {
	if p.MergedAt != nil {
		return "merged"
	}
	return p.State
}

func (p pull) port() gitprovider.Request {
	return gitprovider.Request{
		Number: p.Number, URL: p.URL, Title: p.Title, State: p.state(), Draft: p.Draft,
		Source: p.Head.Ref, Target: p.Base.Ref, Mergeable: p.Mergeable, Fork: p.fork(),
	}
}

// fork reports whether the branch is in another repository. It is false if the
// repositories are unknown.
func (p pull) fork() bool {
	return p.Base.Repo != nil && (p.Head.Repo == nil || p.Head.Repo.FullName != p.Base.Repo.FullName)
}

// Propose opens a pull request and then sets labels. Failing to set labels is not an
// error, because the pull request is open.
func (g *github) Propose(ctx context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	path, err := g.repository(p.Repository, "pulls")
	if err != nil {
		return gitprovider.Request{}, err
	}
	var opened pull
	body := map[string]any{"title": p.Title, "body": p.Body, "head": p.Source, "base": p.Target, "draft": p.Draft}
	if _, err := g.Post(ctx, path, body, &opened); err != nil {
		return gitprovider.Request{}, err
	}
	if len(p.Labels) > 0 {
		if labels, err := g.repository(p.Repository, "issues", strconv.Itoa(opened.Number), "labels"); err == nil {
			_, _ = g.Post(ctx, labels, map[string]any{"labels": p.Labels}, nil)
		}
	}
	return opened.port(), nil
}

func (g *github) Proposed(ctx context.Context, repository, source, target string) (gitprovider.Request, error) {
	path, err := g.repository(repository, "pulls")
	if err != nil {
		return gitprovider.Request{}, err
	}
	owner, _, _ := strings.Cut(repository, "/")
	branch := source
	if fork, name, ok := strings.Cut(source, ":"); ok { // a branch of a fork
		owner, branch = fork, name
	}
	query := url.Values{"state": {"open"}, "head": {owner + ":" + branch}}
	if target != "" {
		query.Set("base", target)
	}
	var open []pull
	if _, err := g.Get(ctx, path, query, &open); err != nil {
		return gitprovider.Request{}, err
	}
	for _, p := range open { // GitHub ignores invalid filters
		if p.Head.Ref == branch && (target == "" || p.Base.Ref == target) {
			return p.port(), nil
		}
	}
	return gitprovider.Request{}, g.Fail(gitprovider.NotFound, "")
}

func (g *github) Request(ctx context.Context, repository string, number int) (gitprovider.Request, error) {
	p, err := g.pull(ctx, repository, number)
	if err != nil {
		return gitprovider.Request{}, err
	}
	return p.port(), nil
}

func (g *github) pull(ctx context.Context, repository string, number int) (p pull, err error) {
	path, err := g.repository(repository, "pulls", strconv.Itoa(number))
	if err != nil {
		return pull{}, err
	}
	_, err = g.Get(ctx, path, nil, &p)
	return p, err
}

// AskReview implements gitprovider.Reviewing.
func (g *github) AskReview(ctx context.Context, repository string, number int, logins []string) error {
	path, err := g.repository(repository, "pulls", strconv.Itoa(number), "requested_reviewers")
	if err != nil {
		return err
	}
	_, err = g.Post(ctx, path, map[string]any{"reviewers": logins}, nil)
	return err
}
