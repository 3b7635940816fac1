package gitea

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// maxListPages limits lists that are read in full: labels, reviews, comments.
const maxListPages = 10

// Propose opens a pull request. Gitea marks drafts by a prefix of the title.
func (p *provider) Propose(ctx context.Context, in gitprovider.Proposal) (gitprovider.Request, error) {
	path, err := p.below(in.Repository, "/pulls")
	if err != nil {
		return gitprovider.Request{}, err
	}
	if in.Target == "" {
		r, err := p.Repository(ctx, in.Repository)
		if err != nil {
			return gitprovider.Request{}, err
		}
		in.Target = r.MainBranch
	}
	ids, err := p.labels(ctx, in.Repository, in.Labels)
	if err != nil {
		return gitprovider.Request{}, err
	}
	if in.Draft && !draftTitle(in.Title) {
		in.Title = "WIP: " + in.Title
	}
	var out pull
	_, err = p.call.Post(ctx, path, struct {
		Head   string  `json:"head"`
		Base   string  `json:"base"`
		Title  string  `json:"title"`
		Body   string  `json:"body"`
		Labels []int64 `json:"labels,omitempty"`
	}{in.Source, in.Target, in.Title, in.Body, ids}, &out)
	if err != nil {
		return gitprovider.Request{}, err
	}
	made := out.read()
	made.Mergeable = nil // not known yet
	return made, nil
}

// labels finds the IDs of labels of the repository and its organisation. An unknown label
// is an error before the pull request is opened.
func (p *provider) labels(ctx context.Context, name string, wanted []string) ([]int64, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	have, err := all[label](ctx, p, name, "/labels", maxListPages)
	if err != nil {
		return nil, err
	}
	ids, missing := match(have, wanted)
	if missing == "" {
		return ids, nil
	}
	shared, err := p.organisationLabels(ctx, name)
	if err != nil {
		return nil, err
	}
	if ids, missing = match(append(have, shared...), wanted); missing == "" {
		return ids, nil
	}
	refusal := p.call.Fail(gitprovider.Refused, "")
	refusal.Message = fmt.Sprintf("The repository %s has no label %q. Create it there, or leave it out.", name, missing)
	return nil, refusal
}

func (p *provider) organisationLabels(ctx context.Context, name string) ([]label, error) {
	owner, _, _ := strings.Cut(name, "/")
	var out []label
	r := call.Request{Path: call.Path("orgs", owner, "labels"), Query: pageQuery(1, maxPage)}
	err := call.Each(ctx, p.call, r, maxListPages, func(page []label) bool {
		out = append(out, page...)
		return true
	})
	switch gitprovider.ReasonOf(err) {
	case gitprovider.NotFound, gitprovider.Scope: // the owner is a person, or the token has no access to the organisation
		return nil, nil
	}
	return out, err
}

// match finds the IDs of names, and the first name without a label.
func match(have []label, wanted []string) (ids []int64, missing string) {
	for _, name := range wanted {
		i := slices.IndexFunc(have, func(l label) bool { return strings.EqualFold(l.Name, name) })
		if i < 0 {
			return nil, name
		}
		ids = append(ids, have[i].ID)
	}
	return ids, ""
}

// Proposed searches the open pull requests, newest first: the route for a pair of
// branches does not support slashes.
func (p *provider) Proposed(ctx context.Context, name, source, target string) (gitprovider.Request, error) {
	path, err := p.below(name, "/pulls")
	if err != nil {
		return gitprovider.Request{}, err
	}
	query := pageQuery(1, maxPage)
	query.Set("state", "open")
	query.Set("sort", "recentupdate")
	query.Set("base_branch", target) // ignored by old hosts
	var found *pull
	err = call.Each(ctx, p.call, call.Request{Path: path, Query: query}, maxListPages, func(page []pull) bool {
		for _, pr := range page {
			if pr.from(source) && pr.Base.branch() == target {
				found = &pr
				return false
			}
		}
		return true
	})
	if err != nil {
		return gitprovider.Request{}, err
	}
	if found == nil {
		return gitprovider.Request{}, p.call.Fail(gitprovider.NotFound, "")
	}
	return found.read(), nil
}

func (p *provider) Request(ctx context.Context, name string, number int) (gitprovider.Request, error) {
	found, err := p.pull(ctx, name, number)
	if err != nil {
		return gitprovider.Request{}, err
	}
	one := &seen{pull: found, name: name, number: number}
	if err := p.settle(ctx, []*seen{one}); err != nil {
		return gitprovider.Request{}, err
	}
	return one.read(), nil
}

func (p *provider) pull(ctx context.Context, name string, number int) (pull, error) {
	var out pull
	err := p.get(ctx, name, call.Path("pulls", strconv.Itoa(number)), nil, &out)
	return out, err
}

// draftTitle reports whether a title marks a draft, with the default configuration.
func draftTitle(title string) bool {
	title = strings.ToUpper(strings.TrimSpace(title))
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// AskReview implements gitprovider.Reviewing.
func (p *provider) AskReview(ctx context.Context, repository string, number int, logins []string) error {
	path, err := p.below(repository, "/pulls/"+strconv.Itoa(number)+"/requested_reviewers")
	if err != nil {
		return err
	}
	_, err = p.call.Post(ctx, path, map[string]any{"reviewers": logins}, nil)
	return err
}
