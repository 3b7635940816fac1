package gitprovider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Provider is a git provider as seen with one token. Repository names are owner/name
// (GitLab: any depth). The error of every method is an *Error, or the context's error.
type Provider interface {
	// User returns the owner of the token.
	User(ctx context.Context) (User, error)
	// Repositories lists the user's repositories, page by page.
	Repositories(ctx context.Context, q RepositoryQuery) (Repositories, error)
	// Search finds repositories by a part of the name. A URL finds exactly its
	// repository.
	Search(ctx context.Context, q SearchQuery) ([]Repository, error)
	Repository(ctx context.Context, name string) (Repository, error)
	// Branches lists branches, or those with Query in their name.
	Branches(ctx context.Context, repository string, q BranchQuery) (Branches, error)
	// Installations lists the installations of an app (GitHub), or workspaces
	// (Bitbucket). Unsupported elsewhere.
	Installations(ctx context.Context) ([]string, error)
	// Tasks lists what the user has to do at the provider.
	Tasks(ctx context.Context) ([]Task, error)
	// Folder lists the files in a folder. NotFound if it does not exist.
	Folder(ctx context.Context, repository, ref, path string) ([]File, error)
	// File reads a file; ref "" is the main branch.
	File(ctx context.Context, repository, ref, path string) ([]byte, error)
	// Propose opens a pull request.
	Propose(ctx context.Context, p Proposal) (Request, error)
	// Proposed finds the open pull request between two branches, for when Propose fails
	// because there is one. NotFound if there is none.
	Proposed(ctx context.Context, repository, source, target string) (Request, error)
	Request(ctx context.Context, repository string, number int) (Request, error)
	// Discussion returns a pull request as an issue: its text, comments, reviews with
	// comments on lines, and the checks of its newest commit.
	Discussion(ctx context.Context, repository string, number int) (Issue, error)
	Issue(ctx context.Context, repository string, number int) (Issue, error)
	// Comment adds a comment to an issue, or to a pull request if pull is true.
	Comment(ctx context.Context, repository string, number int, pull bool, text string) error
}

// User is a person at a provider.
type User struct {
	ID, Login, AvatarURL, Company, Name, Email string
}

// Repository is a repository in lists.
type Repository struct {
	ID, Name   string // Name is the full one, owner/name
	Public     bool
	Stars      *int
	PushedAt   time.Time // zero if not known
	Owner      string    // "user", "organization" or "" if not known
	MainBranch string
}

// Labeller is a Provider that knows who added a label to an issue. It is used if a
// webhook request does not say which label is new.
type Labeller interface {
	// LabelledBy returns the user who added the label last, or "" if unknown.
	LabelledBy(ctx context.Context, repository string, number int, label string) (string, error)
}

// Gatekeeper is a Provider that knows who may push to a repository.
type Gatekeeper interface {
	// CanPush reports whether a user may push: the owner of the token for login "", else
	// the user with that name. Unsupported if the provider only knows the former.
	CanPush(ctx context.Context, repository, login string) (bool, error)
}

// CanPush asks a provider who may push. Unsupported if it does not know.
func CanPush(ctx context.Context, p Provider, repository, login string) (bool, error) {
	g, ok := p.(Gatekeeper)
	if !ok {
		return false, &Error{Reason: Unsupported, Message: "The git provider does not report who can push."}
	}
	return g.CanPush(ctx, repository, login)
}

// Reviewing is a Provider that can ask people to review a pull request.
type Reviewing interface {
	// AskReview asks the users with these names. The error names those that cannot be asked.
	AskReview(ctx context.Context, repository string, number int, logins []string) error
}

// AskReview asks people to review a pull request. Unsupported if the provider has no reviewers.
func AskReview(ctx context.Context, p Provider, repository string, number int, logins []string) error {
	r, ok := p.(Reviewing)
	if !ok {
		return &Error{Reason: Unsupported, Message: "The git provider does not support review requests."}
	}
	return r.AskReview(ctx, repository, number, logins)
}

// RepositoryQuery selects a page. Pages count from 1.
type RepositoryQuery struct {
	Sort          string // pushed, updated, created or full_name; others mean pushed
	Page, PerPage int
	Installation  string
}

// Repositories is a page of repositories. Next is 0 on the last page.
type Repositories struct {
	Items []Repository
	Next  int
}

// SearchQuery finds repositories.
type SearchQuery struct {
	Text, Sort, Order string // Sort: stars, forks, updated; Order: desc, asc
	PerPage           int
}

// Branch is a branch in lists.
type Branch struct {
	Name, Commit string
	Protected    bool
	PushedAt     time.Time // zero if not known
}

// BranchQuery selects a page of branches; with Query, those that contain it.
type BranchQuery struct {
	Query         string
	Page, PerPage int
}

// Branches is a page of branches. Total is -1 if unknown.
type Branches struct {
	Items []Branch
	More  bool
	Total int
}

// Task is something to do, with a type of api.SuggestedTask.
type Task struct {
	Type, Repository, Title string
	Number                  int
}

// The types of tasks that providers suggest.
const (
	MergeConflicts     = "MERGE_CONFLICTS"
	FailingChecks      = "FAILING_CHECKS"
	UnresolvedComments = "UNRESOLVED_COMMENTS"
	OpenIssue          = "OPEN_ISSUE"
)

// File is an entry of a folder.
type File struct {
	Name, Path string
	Folder     bool
}

// Proposal is a pull request to open.
type Proposal struct {
	Repository, Title, Body string
	Source, Target          string // branches
	Draft                   bool
	Labels                  []string
}

// Request is a pull request.
type Request struct {
	Number         int
	URL, Title     string
	State          string // open, closed or merged
	Draft          bool
	Source, Target string
	Fork           bool  // Source is a branch of another repository
	Mergeable      *bool // nil if unknown, or not known yet
}

// Issue is an issue with its comments, oldest first.
type Issue struct {
	Number           int
	Title, Body, URL string
	Author, State    string
	Comments         []string // each begins with who said it: "ada: …"; a remark on a line also with "file:line: "
	Checks           []string // of a pull request: "name: state", those that failed first; nil if not known
}

// Reason is why a provider failed.
type Reason string

// The reasons.
const (
	BadToken    Reason = "token"       // invalid or expired token
	Scope       Reason = "scope"       // the token lacks a permission
	NotFound    Reason = "not-found"   // or not visible to the token
	RateLimited Reason = "rate"        // rate limit exceeded
	Unavailable Reason = "unavailable" // unreachable, or a server error
	Refused     Reason = "refused"     // rejected with a reason
	Unsupported Reason = "unsupported" // not a feature of the provider
	Blocked     Reason = "blocked"     // blocked by the outbound policy
)

// Error is an error of a provider, in words for the user. It never contains a token.
type Error struct {
	Reason     Reason
	Provider   string // as in settings: github, gitlab, …
	Host       string
	Message    string        // a sentence that says what to do
	RetryAfter time.Duration // for RateLimited, if known
}

func (e *Error) Error() string { return e.Message }

// ReasonOf returns the reason of an *Error, or "" for other errors.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// Failure returns the Error for a reason that all providers share.
func Failure(provider, host string, reason Reason, detail string) *Error {
	d := Describe(provider)
	name := d.Phrase
	if d.Generic {
		name = host
	}
	text := map[Reason]string{
		BadToken:    "%s rejected the stored token; it may have expired or been revoked. Store a new one in the settings.",
		Scope:       "The token stored for %s is not allowed to do this. Store one with more rights (repositories, and issues or pull requests) in the settings.",
		NotFound:    "Not found on %s, or the stored token has no access to it.",
		RateLimited: "Rate limited by %s. Try again later.",
		Unavailable: "%s is not responding correctly. Try again later.",
		Refused:     "%s refused the request.",
		Unsupported: "Not found on %s.",
		Blocked:     "The address of %s is not allowed.",
	}[reason]
	message := fmt.Sprintf(text, name)
	if detail != "" {
		message += " It says: " + detail
	}
	return &Error{Reason: reason, Provider: provider, Host: host, Message: message}
}
