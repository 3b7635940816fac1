package giteatest

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"testing"
	"time"
)

// CloneURL is where git finds a repository. It holds no credentials.
func (f *Forge) CloneURL(repository string) string { return f.URL + "/" + repository + ".git" }

// Organisation makes one that the user owns. The name is made its own.
func (u *User) Organisation(t testing.TB, name string) string {
	t.Helper()
	name += "-of-" + u.Login
	u.Call(t, "POST", "/orgs", map[string]any{"username": name}, nil)
	return name
}

// Repository makes one, of the user's own or, if an owner is named, of that
// organisation. Its branch main has a README.md. Returns owner/name.
func (u *User) Repository(t testing.TB, owner, name string, private bool) string {
	t.Helper()
	path := "/user/repos"
	if owner != "" {
		path = "/orgs/" + owner + "/repos"
	}
	var made struct {
		FullName string `json:"full_name"`
	}
	u.Call(t, "POST", path, map[string]any{"name": name, "private": private, "auto_init": true, "default_branch": "main", "readme": "Default"}, &made)
	return made.FullName
}

// Invite gives another user access: "read", "write" or "admin".
func (u *User) Invite(t testing.TB, repository string, who *User, permission string) {
	t.Helper()
	u.Call(t, "PUT", "/repos/"+repository+"/collaborators/"+who.Login, map[string]any{"permission": permission}, nil)
}

// Write commits a new file to a branch, which begins at main if it does not
// exist (fresh), and returns the commit.
func (u *User) Write(t testing.TB, repository, branch string, fresh bool, path, content string) string {
	t.Helper()
	in := map[string]any{"content": base64.StdEncoding.EncodeToString([]byte(content)), "message": "Write " + path}
	if fresh {
		in["branch"], in["new_branch"] = "main", branch
	} else {
		in["branch"] = branch
	}
	var made struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	u.Call(t, "POST", "/repos/"+repository+"/contents/"+(&url.URL{Path: path}).EscapedPath(), in, &made)
	return made.Commit.SHA
}

// Commit is one as the forge tells it.
type Commit struct {
	SHA    string `json:"sha"`
	Commit struct {
		Message string `json:"message"`
		Author  struct {
			Name  string `json:"name"`
			Email string `json:"email"`
		} `json:"author"`
	} `json:"commit"`
}

// Commits are those of a branch, the newest first.
func (u *User) Commits(t testing.TB, repository, branch string) []Commit {
	t.Helper()
	var out []Commit
	u.Call(t, "GET", "/repos/"+repository+"/commits?stat=false&sha="+url.QueryEscape(branch), nil, &out)
	return out
}

// Status reports a check of a commit: "success", "failure", "pending" or "error".
func (u *User) Status(t testing.TB, repository, commit, context, state string) {
	t.Helper()
	u.Call(t, "POST", "/repos/"+repository+"/statuses/"+commit, map[string]any{"context": context, "state": state}, nil)
}

// Label makes one.
func (u *User) Label(t testing.TB, repository, name string) {
	t.Helper()
	u.Call(t, "POST", "/repos/"+repository+"/labels", map[string]any{"name": name, "color": "#00aabb"}, nil)
}

// Issue opens one, assigned to those named by their logins, and returns its number.
func (u *User) Issue(t testing.TB, repository, title, body string, assignees ...string) int {
	t.Helper()
	var made struct {
		Number int `json:"number"`
	}
	u.Call(t, "POST", "/repos/"+repository+"/issues", map[string]any{"title": title, "body": body, "assignees": assignees}, &made)
	return made.Number
}

// Pull opens a pull request from a branch to main and returns its number.
func (u *User) Pull(t testing.TB, repository, source, title, body string) int {
	t.Helper()
	var made struct {
		Number int `json:"number"`
	}
	u.Call(t, "POST", "/repos/"+repository+"/pulls", map[string]any{"head": source, "base": "main", "title": title, "body": body}, &made)
	return made.Number
}

// AwaitMergeable returns once the forge has found that a pull request can be
// merged, which it looks at on its own time. The time limit of the test run is
// the only one.
func (u *User) AwaitMergeable(t testing.TB, repository string, number int) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var pr struct {
			Mergeable bool `json:"mergeable"`
		}
		u.Call(t, "GET", fmt.Sprintf("/repos/%s/pulls/%d", repository, number), nil, &pr)
		if pr.Mergeable {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the forge does not find the pull request mergeable")
		}
	}
}

// Comment says something below an issue or pull request.
func (u *User) Comment(t testing.TB, repository string, number int, text string) {
	t.Helper()
	u.Call(t, "POST", fmt.Sprintf("/repos/%s/issues/%d/comments", repository, number), map[string]any{"body": text}, nil)
}

// Comment is a comment of an issue.
type Comment struct {
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// Comments are what was said below an issue or pull request, oldest first.
func (u *User) Comments(t testing.TB, repository string, number int) []Comment {
	t.Helper()
	var out []Comment
	u.Call(t, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", repository, number), nil, &out)
	return out
}

// AwaitComments returns what was said once there are that many. The time limit
// of the test run is the only one.
func (u *User) AwaitComments(t testing.TB, repository string, number, many int) []Comment {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if all := u.Comments(t, repository, number); len(all) >= many {
			return all
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("nothing more is said")
		}
	}
}

// Remark is one on a line of a file that a pull request changes.
type Remark struct {
	Path string `json:"path"`
	Body string `json:"body"`
	Line int    `json:"new_position"`
}

// Review reviews a pull request of another user: "APPROVED", "COMMENT" or "REQUEST_CHANGES".
func (u *User) Review(t testing.TB, repository string, number int, opinion, body string, remarks ...Remark) {
	t.Helper()
	u.Call(t, "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", repository, number), map[string]any{
		"event": opinion, "body": body, "comments": remarks,
	}, nil)
}

// Webhook has the forge tell an address on this machine of events, signed with
// the secret: "issues", "issue_comment", "pull_request", "push", …
func (u *User) Webhook(t testing.TB, repository, address, secret string, events ...string) {
	t.Helper()
	u.Call(t, "POST", "/repos/"+repository+"/hooks", map[string]any{
		"type": "gitea", "active": true, "events": events,
		"config": map[string]any{"url": address, "content_type": "json", "secret": secret},
	}, nil)
}
