package bitbucket

import (
	"context"
	"net/url"
	"strings"

	"deckhand/internal/gitprovider"
)

// CanPush implements gitprovider.Gatekeeper. Of others only administrators are told.
func (c *cloud) CanPush(ctx context.Context, name, login string) (bool, error) {
	owner, slug, err := split(c.Caller, name)
	if err != nil {
		return false, err
	}
	if login != "" {
		return false, c.Fail(gitprovider.Unsupported, "")
	}
	var page cloudPage[struct{ Permission string }]
	if _, err := c.Get(ctx, "/user/permissions/repositories", url.Values{"q": {"repository.full_name = " + quoted(owner+"/"+slug)}}, &page); err != nil {
		return false, err
	}
	for _, v := range page.Values {
		if v.Permission == "write" || v.Permission == "admin" {
			return true, nil
		}
	}
	return false, nil
}

// CanPush implements gitprovider.Gatekeeper.
func (d *dataCenter) CanPush(ctx context.Context, name, login string) (bool, error) {
	owner, slug, err := split(d.Caller, name)
	if err != nil {
		return false, err
	}
	if login != "" {
		return false, d.Fail(gitprovider.Unsupported, "")
	}
	var page struct {
		Values []struct {
			Slug    string
			Project struct{ Key string }
		}
	}
	query := url.Values{"projectkey": {owner}, "name": {slug}, "permission": {"REPO_WRITE"}, "limit": {"100"}}
	if _, err := d.Get(ctx, "/repos", query, &page); err != nil {
		return false, err
	}
	for _, r := range page.Values {
		if strings.EqualFold(r.Slug, slug) && strings.EqualFold(r.Project.Key, owner) {
			return true, nil
		}
	}
	return false, nil
}
