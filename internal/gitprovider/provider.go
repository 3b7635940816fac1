package gitprovider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Provider is a place where repositories live, as the owner of one token sees
// it. Names of repositories are owner/name (GitLab: any depth). Every method
// fails with an *Error, or with the context's error.
type Provider interface {
	// User is whom the token belongs to.
	User(ctx context.Context) (User, error)
	// Repositories lists those the user works with, page by page.
	Repositories(ctx context.Context, q RepositoryQuery) (Repositories, error)
	// Search finds repositories by a part of the name. What looks like an address
	// finds exactly the repository it leads to.
	Search(ctx context.Context, q SearchQuery) ([]Repository, error)
	Repository(ctx context.Context, name string) (Repository, error)
	// Branches lists branches, or finds those with Query in their name.
	Branches(ctx context.Context, repository string, q BranchQuery) (Branches, error)
	// Installations are where an app was let in (GitHub), or workspaces
	// (Bitbucket). Unsupported elsewhere.
	Installations(ctx context.Context) ([]string, error)
	// Tasks are what the provider says is to be done by the user.
	Tasks(ctx context.Context) ([]Task, error)
	// Folder lists the files right below a folder. One that does not exist is NotFound.
	Folder(ctx context.Context, repository, ref, path string) ([]File, error)
	// File reads one; ref "" is the main branch.
	File(ctx context.Context, repository, ref, path string) ([]byte, error)
	// Propose opens a pull request.
	Propose(ctx context.Context, p Proposal) (Request, error)
	// Proposed finds the open pull request from one branch to another: what to do
	// when Propose is refused because there is one. NotFound if there is none.
	Proposed(ctx context.Context, repository, source, target string) (Request, error)
	Request(ctx context.Context, repository string, number int) (Request, error)
	// Discussion is a pull request as an issue: its text, what was said about it,
	// remarks of reviews on lines included, and how the checks of its newest commit stand.
	Discussion(ctx context.Context, repository string, number int) (Issue, error)
	Issue(ctx context.Context, repository string, number int) (Issue, error)
	// Comment answers below an issue, or below a pull request if pull is true.
	Comment(ctx context.Context, repository string, number int, pull bool, text string) error
}

// User is a person at a provider.
type User struct {
	ID, Login, AvatarURL, Company, Name, Email string
}

// Repository is one, as lists show it.
type Repository struct {
	ID, Name   string // Name is the full one, owner/name
	Public     bool
	Stars      *int
	PushedAt   time.Time // zero if not known
	Owner      string    // "user", "organization" or "" if not known
	MainBranch string
}

// Labeller is a Provider that knows who gave an issue the label that it has. It
// is asked where a webhook does not say which label is new.
type Labeller interface {
	// LabelledBy is the name of whoever gave it last, "" if that is not known.
	LabelledBy(ctx context.Context, repository string, number int, label string) (string, error)
}

// Gatekeeper is a Provider that knows who may push to a repository.
type Gatekeeper interface {
	// CanPush is true if somebody may: the owner of the token for login "", else
	// the user of that name. Unsupported if the provider tells only of the former.
	CanPush(ctx context.Context, repository, login string) (bool, error)
}

// CanPush asks a provider who may push. One that cannot tell is Unsupported.
func CanPush(ctx context.Context, p Provider, repository, login string) (bool, error) {
	g, ok := p.(Gatekeeper)
	if !ok {
		return false, &Error{Reason: Unsupported, Message: "The git provider does not report who can push."}
	}
	return g.CanPush(ctx, repository, login)
}

// RepositoryQuery selects a page. Pages count from 1.
type RepositoryQuery struct {
	Sort          string // pushed, updated, created or full_name; others mean pushed
	Page, PerPage int
	Installation  string
}

// Repositories is one page of them. Next is 0 on the last one.
type Repositories struct {
	Items []Repository
	Next  int
}

// SearchQuery finds repositories.
type SearchQuery struct {
	Text, Sort, Order string // Sort: stars, forks, updated; Order: desc, asc
	PerPage           int
}

// Branch is one.
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

// Branches is one page of them. Total is -1 if the provider does not say.
type Branches struct {
	Items []Branch
	More  bool
	Total int
}

// Task is something to be done, of one of the types that api.SuggestedTask has.
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

// File is one that a folder holds.
type File struct {
	Name, Path string
	Folder     bool
}

// Proposal is a pull request that shall be opened.
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
	Mergeable      *bool // nil if not known (yet)
}

// Issue is one with what was said about it, oldest first.
type Issue struct {
	Number           int
	Title, Body, URL string
	Author, State    string
	Comments         []string // each begins with who said it: "ada: …"; a remark on a line also with "file:line: "
	Checks           []string // of a pull request: "name: state", those that failed first; nil if not known
}

// Reason is why a provider did not do what it was asked.
type Reason string

// The reasons.
const (
	BadToken    Reason = "token"       // it does not know the token, or no longer
	Scope       Reason = "scope"       // the token may not do this
	NotFound    Reason = "not-found"   // or the token may not see it
	RateLimited Reason = "rate"        // asked too often
	Unavailable Reason = "unavailable" // it does not answer, or with an error of its own
	Refused     Reason = "refused"     // it says no, and why
	Unsupported Reason = "unsupported" // it has no such thing
	Blocked     Reason = "blocked"     // this server may not connect to its address
)

// Error says what a provider answered, in words for the user. It never holds a token.
type Error struct {
	Reason     Reason
	Provider   string // as in settings: github, gitlab, …
	Host       string
	Message    string        // a whole sentence that says what to do about it
	RetryAfter time.Duration // when RateLimited, if the provider says it
}

func (e *Error) Error() string { return e.Message }

// ReasonOf is why something failed; "" if it was not the provider.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// Failure makes the Error for an answer that every provider may give.
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
