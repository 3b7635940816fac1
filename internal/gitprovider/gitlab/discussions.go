package gitlab

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"deckhand/internal/gitprovider"
)

const (
	mostNotePages = 5 // 500 comments
	mostJobPages  = 3
)

// issue is an issue or a merge request.
type issue struct {
	IID         int
	Title       string
	Description string
	URL         string `json:"web_url"`
	State       string
	Author      struct{ Username string }
	Pipeline    *pipeline `json:"head_pipeline"` // merge requests only
}

// pipeline is the CI pipeline of a commit. For a merge request from a fork, it may belong
// to the fork.
type pipeline struct {
	ID        int64
	ProjectID int64 `json:"project_id"`
	Status    string
}

// note is a comment, or an entry of GitLab's log.
type note struct {
	Body     string
	System   bool
	Author   struct{ Username string }
	Position *struct {
		NewPath string `json:"new_path"`
		OldPath string `json:"old_path"`
		NewLine int    `json:"new_line"`
		OldLine int    `json:"old_line"`
	}
}

func (n note) String() string {
	said := n.Author.Username + ": "
	if p := n.Position; p != nil {
		said += cmp.Or(p.NewPath, p.OldPath)
		if line := cmp.Or(p.NewLine, p.OldLine); line != 0 { // otherwise it is about the whole file
			said += ":" + strconv.Itoa(line)
		}
		said += ": "
	}
	return said + n.Body
}

func (h *host) Issue(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	out, _, err := h.read(ctx, project(repository, "issues", strconv.Itoa(number)))
	return out, err
}

func (h *host) Discussion(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	out, pipeline, err := h.read(ctx, project(repository, "merge_requests", strconv.Itoa(number)))
	if err != nil || pipeline == nil {
		return out, err
	}
	if out.Checks, err = h.checks(ctx, *pipeline); err != nil {
		return gitprovider.Issue{}, err
	}
	return out, nil
}

// read returns the issue or merge request at a path with its comments.
func (h *host) read(ctx context.Context, at string) (gitprovider.Issue, *pipeline, error) {
	var i issue
	if _, err := h.Get(ctx, at, nil, &i); err != nil {
		return gitprovider.Issue{}, nil, err
	}
	notes, err := all[note](ctx, h.Caller, at+"/notes", url.Values{"sort": {"asc"}, "order_by": {"created_at"}}, mostNotePages)
	if err != nil {
		return gitprovider.Issue{}, nil, err
	}
	out := gitprovider.Issue{Number: i.IID, Title: i.Title, Body: i.Description, URL: i.URL, Author: i.Author.Username, State: state(i.State)}
	for _, n := range notes {
		if !n.System {
			out.Comments = append(out.Comments, n.String())
		}
	}
	return out, i.Pipeline, nil
}

// checks returns the jobs of a pipeline, or the pipeline itself if the token may not see
// its jobs.
func (h *host) checks(ctx context.Context, p pipeline) ([]string, error) {
	type job struct{ Name, Status string }
	at := project(strconv.FormatInt(p.ProjectID, 10), "pipelines", strconv.FormatInt(p.ID, 10), "jobs")
	jobs, err := all[job](ctx, h.Caller, at, url.Values{}, mostJobPages)
	switch reason := gitprovider.ReasonOf(err); {
	case reason == gitprovider.Scope, reason == gitprovider.NotFound, err == nil && len(jobs) == 0:
		return []string{"pipeline: " + p.Status}, nil
	case err != nil:
		return nil, err
	}
	slices.SortStableFunc(jobs, func(a, b job) int {
		failed := func(j job) int {
			if j.Status == "failed" {
				return 0
			}
			return 1
		}
		return cmp.Compare(failed(a), failed(b))
	})
	var checks []string
	for _, j := range jobs {
		checks = append(checks, j.Name+": "+j.Status)
	}
	return checks, nil
}
