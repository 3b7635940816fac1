package gitea

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
)

// The parts of Gitea's responses that are used.

type user struct {
	ID        int64  `json:"id"`
	Login     string `json:"login"`
	FullName  string `json:"full_name"`
	Email     string `json:"email"`
	AvatarURL string `json:"avatar_url"`
}

func (u user) read() gitprovider.User {
	return gitprovider.User{
		ID: strconv.FormatInt(u.ID, 10), Login: u.Login, AvatarURL: u.AvatarURL, Name: u.FullName, Email: u.Email,
	}
}

type repository struct {
	ID            int64     `json:"id"`
	FullName      string    `json:"full_name"`
	Owner         user      `json:"owner"`
	Private       bool      `json:"private"`
	Internal      bool      `json:"internal"` // private because its owner is private
	Stars         int       `json:"stars_count"`
	DefaultBranch string    `json:"default_branch"`
	UpdatedAt     time.Time `json:"updated_at"`
}

func (r repository) read() gitprovider.Repository {
	return gitprovider.Repository{
		ID: strconv.FormatInt(r.ID, 10), Name: r.FullName, Public: !r.Private && !r.Internal,
		Stars: &r.Stars, PushedAt: known(r.UpdatedAt), MainBranch: r.DefaultBranch,
	}
}

type branch struct {
	Name   string `json:"name"`
	Commit *struct {
		ID        string    `json:"id"`
		Timestamp time.Time `json:"timestamp"`
	} `json:"commit"`
	Protected bool `json:"protected"`
}

func (b branch) read() gitprovider.Branch {
	out := gitprovider.Branch{Name: b.Name, Protected: b.Protected}
	if b.Commit != nil {
		out.Commit, out.PushedAt = b.Commit.ID, known(b.Commit.Timestamp)
	}
	return out
}

// known drops the times that mean "none": the year 1, and 1970.
func known(t time.Time) time.Time {
	if t.Unix() <= 0 {
		return time.Time{}
	}
	return t
}

type entry struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Type string `json:"type"` // file, dir, symlink or submodule
}

type pull struct {
	Number    int    `json:"number"`
	Title     string `json:"title"`
	Body      string `json:"body"`
	HTMLURL   string `json:"html_url"`
	State     string `json:"state"`
	Draft     bool   `json:"draft"` // not set by old versions
	Merged    bool   `json:"merged"`
	Mergeable bool   `json:"mergeable"`
	User      *user  `json:"user"`
	Head      tip    `json:"head"`
	Base      tip    `json:"base"`
}

type tip struct {
	Label      string `json:"label"`
	Ref        string `json:"ref"`
	SHA        string `json:"sha"`
	RepoID     int64  `json:"repo_id"`
	Repository *struct {
		Owner user `json:"owner"`
	} `json:"repo"` // null if the fork is gone
}

// branch returns the name of the branch. After it was deleted, only the label has it.
func (t tip) branch() string {
	if strings.HasPrefix(t.Ref, "refs/pull/") && t.Label != "" {
		return t.Label
	}
	return t.Ref
}

// from reports whether the pull request is from a branch, or from a fork's branch:
// owner:branch.
func (p pull) from(source string) bool {
	if p.Head.RepoID == p.Base.RepoID && p.Head.branch() == source {
		return true
	}
	return p.Head.Repository != nil && p.Head.Repository.Owner.Login+":"+p.Head.branch() == source
}

func (p pull) draft() bool { return p.Draft || draftTitle(p.Title) }

func (p pull) read() gitprovider.Request {
	out := gitprovider.Request{
		Number: p.Number, URL: p.HTMLURL, Title: p.Title, State: p.State, Draft: p.draft(),
		Source: p.Head.branch(), Target: p.Base.branch(), Fork: p.Head.RepoID != p.Base.RepoID,
	}
	if p.Merged {
		out.State = "merged"
	}
	if out.State == "open" && !out.Draft { // a draft is never mergeable
		out.Mergeable = &p.Mergeable
	}
	return out
}

type issue struct {
	Number     int    `json:"number"`
	Title      string `json:"title"`
	Body       string `json:"body"`
	HTMLURL    string `json:"html_url"`
	State      string `json:"state"`
	User       *user  `json:"user"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
}

// comment is a comment on an issue, or on a line in a review.
type comment struct {
	Body        string    `json:"body"`
	User        *user     `json:"user"`
	CreatedAt   time.Time `json:"created_at"`
	Path        string    `json:"path"`
	Line        int       `json:"position"`
	RemovedLine int       `json:"original_position"` // for a comment on a removed line
}

// happening is an item of an issue's timeline.
type happening struct {
	Type  string `json:"type"`
	Body  string `json:"body"`
	User  *user  `json:"user"`
	Label label  `json:"label"`
}

// labelGiven is the body if a label was added; it is empty if one was removed.
const labelGiven = "1"

func (c comment) read() string {
	text := c.Body
	if c.Path != "" {
		text = c.Path + ":" + strconv.Itoa(cmp.Or(c.Line, c.RemovedLine)) + ": " + text
	}
	return login(c.User) + ": " + text
}

type review struct {
	ID          int64     `json:"id"`
	State       string    `json:"state"` // APPROVED, COMMENT, REQUEST_CHANGES, REQUEST_REVIEW or PENDING
	Body        string    `json:"body"`
	User        *user     `json:"user"`
	Dismissed   bool      `json:"dismissed"`
	Remarks     int       `json:"comments_count"`
	SubmittedAt time.Time `json:"submitted_at"`
}

// checks are the statuses of a commit.
type checks struct {
	State    string `json:"state"`
	Statuses []struct {
		Context string `json:"context"`
		State   string `json:"status"`
	} `json:"statuses"`
}

func failed(state string) bool { return state == "failure" || state == "error" }

// read lists them, failures first.
func (c checks) read() []string {
	var bad, good []string
	for _, s := range c.Statuses {
		text := s.Context + ": " + s.State
		if failed(s.State) {
			bad = append(bad, text)
		} else {
			good = append(good, text)
		}
	}
	return append(bad, good...)
}

type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// login returns the user name; deleted accounts are null.
func login(u *user) string {
	if u == nil {
		return "somebody"
	}
	return u.Login
}
