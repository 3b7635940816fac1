package bitbucket

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// AskReview implements gitprovider.Reviewing. Names are not unique there, so people are looked for among the members of
// the workspace. The title is required although it stays as it is.
func (c *cloud) AskReview(ctx context.Context, repository string, number int, logins []string) error {
	at, err := c.below(repository, "pullrequests", strconv.Itoa(number))
	if err != nil {
		return err
	}
	owner, _, err := split(c.Caller, repository)
	if err != nil {
		return err
	}
	type member struct {
		User struct {
			UUID     string
			Nickname string
			Name     string `json:"display_name"`
		}
	}
	members, _, err := cloudList[member](ctx, c, call.Path("workspaces", owner, "members"), nil, 100*mostPages)
	if err != nil {
		return err
	}
	ids := []map[string]string{}
	for _, login := range logins {
		before := len(ids)
		for _, m := range members {
			if strings.EqualFold(m.User.Nickname, login) || strings.EqualFold(m.User.Name, login) {
				ids = append(ids, map[string]string{"uuid": m.User.UUID})
				break
			}
		}
		if len(ids) == before {
			return c.Fail(gitprovider.Refused, "The workspace has no member "+login+".")
		}
	}
	var r cloudRequest
	if _, err := c.Get(ctx, at, nil, &r); err != nil {
		return err
	}
	_, err = c.Do(ctx, call.Request{Method: http.MethodPut, Path: at, Body: map[string]any{"title": r.request().Title, "reviewers": ids}}, nil)
	return err
}

// AskReview implements gitprovider.Reviewing.
func (d *dataCenter) AskReview(ctx context.Context, repository string, number int, logins []string) error {
	at, err := d.below(repository, "pull-requests", strconv.Itoa(number), "participants")
	if err != nil {
		return err
	}
	for _, login := range logins {
		if _, err := d.Post(ctx, at, map[string]any{"user": map[string]string{"name": login}, "role": "REVIEWER"}, nil); err != nil {
			return err
		}
	}
	return nil
}
