package gitlab

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
)

// merge is a merge request in GitLab's API.
type merge struct {
	IID            int
	URL            string `json:"web_url"`
	Title          string
	State          string
	Draft          bool
	WorkInProgress bool   `json:"work_in_progress"` // its older name
	Source         string `json:"source_branch"`
	Target         string `json:"target_branch"`
	SourceProject  int64  `json:"source_project_id"`
	TargetProject  int64  `json:"target_project_id"`
	Conflicts      bool   `json:"has_conflicts"`
	Status         string `json:"merge_status"`
	Detailed       string `json:"detailed_merge_status"`
}

func (m merge) request() gitprovider.Request {
	return gitprovider.Request{
		Number: m.IID, URL: m.URL, Title: m.Title, State: state(m.State), Draft: m.Draft || m.WorkInProgress,
		Source: m.Source, Target: m.Target, Mergeable: m.mergeable(),
		Fork: m.SourceProject != m.TargetProject,
	}
}

// mergeable reports whether there are no conflicts, regardless of missing approvals or
// pipelines.
func (m merge) mergeable() *bool {
	if m.State != "opened" {
		return nil
	}
	clean := !m.Conflicts && m.Detailed != "conflict"
	for _, unknown := range []string{"unchecked", "checking", "preparing", "cannot_be_merged_recheck", "cannot_be_merged_rechecking"} {
		if clean && (m.Detailed == unknown || m.Detailed == "" && m.Status == unknown) {
			return nil
		}
	}
	return &clean
}

// state translates GitLab's states.
func state(s string) string {
	switch s {
	case "opened", "locked": // locked while it is being merged
		return "open"
	}
	return s
}

func (h *host) Propose(ctx context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	if p.Target == "" {
		r, err := h.Repository(ctx, p.Repository)
		if err != nil {
			return gitprovider.Request{}, err
		}
		p.Target = r.MainBranch
	}
	if p.Draft && !strings.HasPrefix(strings.ToLower(p.Title), "draft:") { // GitLab marks drafts by the title
		p.Title = "Draft: " + p.Title
	}
	var m merge
	_, err := h.Post(ctx, project(p.Repository, "merge_requests"), map[string]string{
		"source_branch": p.Source, "target_branch": p.Target, "title": p.Title, "description": p.Body, "labels": strings.Join(p.Labels, ","),
	}, &m)
	return m.request(), err
}

// Proposed finds the open merge request between two branches; to any branch if target is "".
func (h *host) Proposed(ctx context.Context, repository, source, target string) (gitprovider.Request, error) {
	query := url.Values{"state": {"opened"}, "source_branch": {source}, "per_page": {"1"}}
	if target != "" {
		query.Set("target_branch", target)
	}
	var found []merge
	if _, err := h.Get(ctx, project(repository, "merge_requests"), query, &found); err != nil {
		return gitprovider.Request{}, err
	}
	if len(found) == 0 {
		return gitprovider.Request{}, h.Fail(gitprovider.NotFound, "")
	}
	return found[0].request(), nil
}

func (h *host) Request(ctx context.Context, repository string, number int) (gitprovider.Request, error) {
	var m merge
	_, err := h.Get(ctx, project(repository, "merge_requests", strconv.Itoa(number)), nil, &m)
	return m.request(), err
}

func (h *host) Comment(ctx context.Context, repository string, number int, pull bool, text string) error {
	kind := "issues"
	if pull {
		kind = "merge_requests"
	}
	_, err := h.Post(ctx, project(repository, kind, strconv.Itoa(number), "notes"), map[string]string{"body": text}, nil)
	return err
}
