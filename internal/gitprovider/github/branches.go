package github

import (
	"context"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

func (g *github) Branches(ctx context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	path, err := g.repository(repository, "branches")
	if err != nil {
		return gitprovider.Branches{}, err
	}
	if q.Query != "" {
		return g.branchesWith(ctx, repository, q)
	}
	var page []struct {
		Name      string `json:"name"`
		Protected bool   `json:"protected"`
		Commit    struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	answer, err := g.Get(ctx, path, call.PageQuery(q.Page, q.PerPage), &page)
	if err != nil {
		return gitprovider.Branches{}, err
	}
	out := gitprovider.Branches{More: answer.NextPage() != 0, Total: -1}
	for _, b := range page {
		out.Items = append(out.Items, gitprovider.Branch{Name: b.Name, Commit: b.Commit.SHA, Protected: b.Protected})
	}
	return out, nil
}

const branchQuery = `query($owner: String!, $name: String!, $part: String!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    refs(refPrefix: "refs/heads/", query: $part, first: $first, after: $after) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes {
        name
        refUpdateRule { pattern }
        target { oid ... on Commit { committedDate } }
      }
    }
  }
}`

type refs struct {
	TotalCount int `json:"totalCount"`
	PageInfo   struct {
		HasNextPage bool   `json:"hasNextPage"`
		EndCursor   string `json:"endCursor"`
	} `json:"pageInfo"`
	Nodes []struct {
		Name          string `json:"name"`
		RefUpdateRule *struct {
			Pattern string `json:"pattern"`
		} `json:"refUpdateRule"` // what non-administrators see of the protection
		Target struct {
			OID           string    `json:"oid"`
			CommittedDate time.Time `json:"committedDate"`
		} `json:"target"`
	} `json:"nodes"`
}

// branchesWith finds branches by a part of the name. GraphQL has no page numbers, so all
// previous pages are read.
func (g *github) branchesWith(ctx context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	owner, name, _ := strings.Cut(repository, "/")
	variables := map[string]any{"owner": owner, "name": name, "part": q.Query, "first": call.PageSize(q.PerPage)}
	var found refs
	for range min(max(q.Page, 1), maxPages) {
		var data struct {
			Repository *struct {
				Refs *refs `json:"refs"`
			} `json:"repository"`
		}
		if err := g.ask(ctx, branchQuery, variables, &data, func() bool { return data.Repository != nil && data.Repository.Refs != nil }); err != nil {
			return gitprovider.Branches{}, err
		}
		found = *data.Repository.Refs
		if !found.PageInfo.HasNextPage {
			break
		}
		variables["after"] = found.PageInfo.EndCursor
	}
	out := gitprovider.Branches{More: found.PageInfo.HasNextPage, Total: found.TotalCount}
	for _, b := range found.Nodes {
		out.Items = append(out.Items, gitprovider.Branch{
			Name: b.Name, Commit: b.Target.OID, Protected: b.RefUpdateRule != nil, PushedAt: b.Target.CommittedDate.UTC(),
		})
	}
	return out, nil
}
