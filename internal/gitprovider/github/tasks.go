package github

import (
	"context"

	"deckhand/internal/gitprovider"
)

const taskQuery = `query {
  viewer {
    pullRequests(first: 50, states: [OPEN], orderBy: {field: CREATED_AT, direction: DESC}) {
      nodes {
        number
        title
        repository { nameWithOwner isArchived }
        mergeable
        commits(last: 1) { nodes { commit { statusCheckRollup { state } } } }
        reviews(first: 1, states: [CHANGES_REQUESTED, COMMENTED]) { nodes { state } }
      }
    }
  }
  search(type: ISSUE, first: 50, query: "is:open is:issue assignee:@me archived:false sort:created-desc") {
    nodes { ... on Issue { number title repository { nameWithOwner isArchived } } }
  }
}`

// item is an issue or a pull request.
type item struct {
	Number     int    `json:"number"`
	Title      string `json:"title"`
	Repository struct {
		NameWithOwner string `json:"nameWithOwner"`
		IsArchived    bool   `json:"isArchived"`
	} `json:"repository"`
	Mergeable string `json:"mergeable"`
	Commits   struct {
		Nodes []struct {
			Commit struct {
				Rollup *struct {
					State string `json:"state"`
				} `json:"statusCheckRollup"`
			} `json:"commit"`
		} `json:"nodes"`
	} `json:"commits"`
	Reviews struct {
		Nodes []struct {
			State string `json:"state"`
		} `json:"nodes"`
	} `json:"reviews"`
}

func (g *github) Tasks(ctx context.Context) ([]gitprovider.Task, error) {
	type list struct {
		Nodes []*item `json:"nodes"` // null if the viewer has no access
	}
	var data struct {
		Viewer *struct {
			PullRequests list `json:"pullRequests"`
		} `json:"viewer"`
		Search list `json:"search"`
	}
	if err := g.ask(ctx, taskQuery, nil, &data, func() bool { return data.Viewer != nil }); err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	add := func(kind string, i *item) {
		if kind != "" && !i.Repository.IsArchived && i.Repository.NameWithOwner != "" {
			tasks = append(tasks, gitprovider.Task{Type: kind, Repository: i.Repository.NameWithOwner, Title: i.Title, Number: i.Number})
		}
	}
	for _, i := range data.Viewer.PullRequests.Nodes {
		if i != nil {
			add(i.todo(), i)
		}
	}
	for _, i := range data.Search.Nodes {
		if i != nil {
			add(gitprovider.OpenIssue, i)
		}
	}
	return tasks, nil
}

// todo returns the most urgent task of a pull request, or "".
func (i *item) todo() string {
	if i.Mergeable == "CONFLICTING" {
		return gitprovider.MergeConflicts
	}
	for _, n := range i.Commits.Nodes {
		if r := n.Commit.Rollup; r != nil && (r.State == "FAILURE" || r.State == "ERROR") {
			return gitprovider.FailingChecks
		}
	}
	for _, r := range i.Reviews.Nodes {
		if r.State == "CHANGES_REQUESTED" || r.State == "COMMENTED" {
			return gitprovider.UnresolvedComments
		}
	}
	return ""
}
