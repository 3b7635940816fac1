package files

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"path"
	"strings"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/review"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

const (
	aboutRanges = "upstream compares as git/changes does; start with the files before the agent's first tool call; turn with the files before the first tool call after your last message; " +
		"head with the last commit; staged the index with the last commit; unstaged the workspace with the index; branch with the commit at which the work left the branch. " +
		"Where the start of a turn was not recorded, start and turn compare with the commit at which the work left the default branch. "
	aboutReview  = aboutRanges + "Repositories in top-level folders of the workspace are included. " + aboutNames
	aboutCompare = aboutRanges + "Files larger than 1 MB and binary files other than images are refused. " + aboutNames
	aboutRevert  = "Renamed files get their old path back, added files are deleted. If one of the files has changed since you read its etag, nothing is reverted and the response is a 409. " +
		"Starts the sandbox if needed. " + aboutPaths
	aboutStage  = "Starts the sandbox if needed. " + aboutPaths
	aboutDraft  = "Your model writes the message from the uncommitted changes. If the model is not available, the message lists the changed files. Commits nothing."
	aboutCommit = "The author is the one in your settings. Hooks and commit signing of the repository are not run. Starts the sandbox if needed."
	aboutPush   = "Pushes the checked-out commit through the git gate; the token does not enter the sandbox. Hooks of the repository are not run, so Git LFS files are not uploaded. Starts the sandbox if needed."
	aboutPull   = "Uses your stored token for the git provider. The source branch must have been pushed. If a pull request between the branches is already open, that one is returned."
	aboutPulls  = "Lists the five newest pull requests, newest first, in their current state at the git provider."
)

func (d *Handlers) reviewRoutes() []rest.Route {
	route := func(method, path, id, summary, about string, may ...int) rest.Route {
		return rest.Route{Method: method, Path: "/api/conversations/{conversation_id}/git/" + path, ID: id, Tag: rest.TagWorkspace, Summary: summary, About: about, May: append(may, rest.WorkspaceErrors...)}
	}
	slow := func(r rest.Route) rest.Route { r.Stream = true; return r }
	return []rest.Route{
		rest.Op(route("GET", "review", "gitReview", "List changed files of a range with line counts", aboutReview, http.StatusRequestEntityTooLarge), d.gitReview),
		rest.Op(route("GET", "compare", "gitCompare", "Get both versions of a file of a range", aboutCompare, rest.SizeErrors...), d.gitCompare),
		rest.Op(slow(route("POST", "revert", "gitRevert", "Revert files or a hunk", aboutRevert)), d.gitRevert),
		rest.Op(slow(route("POST", "stage", "gitStage", "Stage or unstage files", aboutStage)), d.gitStage),
		rest.Op(slow(route("POST", "commit-message", "gitDraftMessage", "Draft a commit message", aboutDraft)), d.gitDraft),
		rest.Op(slow(route("POST", "commit", "gitCommit", "Commit changes", aboutCommit)), d.gitCommit),
		rest.Op(slow(route("POST", "push", "gitPush", "Push the current commit", aboutPush, http.StatusBadRequest)), d.gitPush),
		rest.Op(slow(route("POST", "pull-request", "openPullRequest", "Open a pull request", aboutPull, http.StatusBadRequest)), d.openPullRequest),
		rest.Op(slow(route("GET", "pull-requests", "reviewPullRequests", "List pull requests with checks and comments", aboutPulls)), d.pullRequests),
	}
}

type gitReviewQuery struct {
	ID     string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Range  string `query:"range" enum:"upstream,start,turn,head,staged,unstaged,branch" default:"upstream"`
	Branch string `query:"branch" maxLength:"255" doc:"For range=branch."`
	Absent string `query:"absent" enum:"error,empty" default:"error" doc:"Response if there is no repository or no workspace yet: error returns an error, empty returns an empty list with repository or workspace in the header X-Absent."`
}

func (d *Handlers) gitReview(ctx context.Context, c *rest.Call, q gitReviewQuery, _ rest.None) (api.GitReview, error) {
	out := api.GitReview{Repositories: []api.ReviewRepository{}, Files: []api.GitFile{}}
	found, err := d.Reviews.Changes(ctx, c.Who.User, session.ID(q.ID), sandbox.GitRange{Kind: q.Range, Branch: q.Branch})
	refused := usecase.RefusalOf(err)
	switch {
	case q.Absent == "empty" && errors.Is(err, workspace.ErrNone):
		c.Header.Set(absentHeader, "workspace")
		return out, nil
	case q.Absent == "empty" && refused != nil && refused.Code == api.CodeNoRepository:
		c.Header.Set(absentHeader, "repository")
		return out, nil
	case errors.Is(err, sandbox.ErrTooBig):
		return out, rest.Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "Too many files have changed. Add generated files to .gitignore.")
	case err != nil:
		return out, err
	}
	for _, r := range found.Repos {
		out.Repositories = append(out.Repositories, api.ReviewRepository{Name: api.EncodeName(r.Name), Branch: r.Branch, Head: r.Head, Default: r.Default, Branches: r.Branches})
	}
	for _, f := range found.Files {
		file := api.GitFile{Status: f.Status, Path: api.EncodeName(f.Path), Added: f.Added, Removed: f.Removed, Binary: f.Binary, Staged: f.Staged, Unstaged: f.Unstaged, ETag: f.ETag}
		if f.From != nil {
			file.From = new(api.EncodeName(f.From))
		}
		out.Files = append(out.Files, file)
		out.Added += f.Added
		out.Removed += f.Removed
	}
	return out, nil
}

type gitCompareQuery struct {
	ID     string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Path   string `query:"path" required:"true" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	From   string `query:"from" maxLength:"12288" doc:"Old path, if the file was renamed."`
	Range  string `query:"range" enum:"upstream,start,turn,head,staged,unstaged,branch" default:"upstream"`
	Branch string `query:"branch" maxLength:"255" doc:"For range=branch."`
	Unfit  string `query:"unfit" enum:"error,told" default:"error" doc:"Response for a file that is missing, too large, not text or unreadable: error returns an error, told returns 200 with the reason in the field unfit."`
}

func (d *Handlers) gitCompare(ctx context.Context, c *rest.Call, q gitCompareQuery, _ rest.None) (api.GitComparison, error) {
	file, from, err := bothPaths(q.Path, q.From)
	if err != nil {
		return api.GitComparison{}, err
	}
	found, err := d.Reviews.Compare(ctx, c.Who.User, session.ID(q.ID), sandbox.GitCompareParams{GitRange: sandbox.GitRange{Kind: q.Range, Branch: q.Branch}, Path: file, From: from})
	out := api.GitComparison{ETag: found.ETag}
	if err == nil {
		err = show(&out, found, string(file))
	}
	if err != nil {
		why, err := tell(q.Unfit, gitFault(err, q.Path))
		return api.GitComparison{Unfit: why}, err
	}
	return out, nil
}

// bothPaths are the path of a file and its old one, which may be "".
func bothPaths(file, from string) ([]byte, []byte, error) {
	now, err := inWorkspace("path", file)
	if err != nil || from == "" {
		return []byte(now), nil, err
	}
	was, err := inWorkspace("from", from)
	return []byte(now), []byte(was), err
}

// pictures are the images that browsers show; those with scripts in them are shown as text.
var pictures = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp", ".ico": "image/x-icon", ".avif": "image/avif"}

// show turns two versions into texts, or into images if one of them is not text.
func show(out *api.GitComparison, found sandbox.GitComparison, file string) error {
	text := func(v *sandbox.GitVersion) bool { return v == nil || v.Text != nil }
	kind := pictures[strings.ToLower(path.Ext(file))]
	out.Image = kind != "" && !(text(found.Original) && text(found.Modified))
	version := func(v *sandbox.GitVersion) *string {
		switch {
		case v == nil:
			return nil
		case !out.Image:
			return v.Text
		case v.Text != nil:
			v.Data = []byte(*v.Text)
		}
		return new("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(v.Data))
	}
	if !out.Image && !(text(found.Original) && text(found.Modified)) {
		return sandbox.ErrBinary
	}
	out.Original, out.Modified = version(found.Original), version(found.Modified)
	return nil
}

func (d *Handlers) gitRevert(ctx context.Context, c *rest.Call, p rest.InConversation, b api.GitRevert) (rest.None, error) {
	in := sandbox.GitRange{Kind: b.Range, Branch: b.Branch.Value}
	var files []sandbox.GitRevertFile
	for _, f := range b.Files {
		file, from, err := bothPaths(f.Path, f.From.Value)
		if err != nil {
			return rest.None{}, inBody(err)
		}
		files = append(files, sandbox.GitRevertFile{Path: file, From: from, ETag: f.ETag})
	}
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	var err error
	switch {
	case b.Hunk != nil && len(files) != 1:
		err = api.Invalid("value_error", "Send exactly one file with hunk.", "hunk")
	case b.Hunk != nil:
		err = d.Reviews.RevertHunk(ctx, c.Who.User, session.ID(p.ID), in, files[0], review.Hunk(*b.Hunk))
	default:
		err = d.Reviews.Revert(ctx, c.Who.User, session.ID(p.ID), sandbox.GitRevertParams{GitRange: in, Files: files})
	}
	return rest.None{}, rest.WhyEnded(ctx, err)
}

func (d *Handlers) gitStage(ctx context.Context, c *rest.Call, p rest.InConversation, b api.GitStage) (rest.None, error) {
	in := sandbox.GitStageParams{Staged: b.Staged}
	for _, name := range b.Paths {
		file, err := inWorkspace("paths", name)
		if err != nil {
			return rest.None{}, inBody(err)
		}
		in.Paths = append(in.Paths, []byte(file))
	}
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	return rest.None{}, rest.WhyEnded(ctx, d.Reviews.Stage(ctx, c.Who.User, session.ID(p.ID), in))
}

func (d *Handlers) gitDraft(ctx context.Context, c *rest.Call, p rest.InConversation, b api.GitDraft) (api.GitMessage, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	out, err := d.Reviews.Draft(ctx, c.Who.User, session.ID(p.ID), api.DecodeName(b.Repository.Value), b.StagedOnly.Value)
	return api.GitMessage{Message: out.Message, Model: out.Model}, rest.WhyEnded(ctx, err)
}

func (d *Handlers) gitCommit(ctx context.Context, c *rest.Call, p rest.InConversation, b api.GitCommit) (api.GitCommitted, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	out, err := d.Reviews.Commit(ctx, c.Who.User, session.ID(p.ID), sandbox.GitCommitParams{Repo: api.DecodeName(b.Repository.Value), Message: b.Message, Branch: b.Branch.Value, StagedOnly: b.StagedOnly.Value})
	return api.GitCommitted{Commit: out.Commit, Branch: out.Branch}, rest.WhyEnded(ctx, err)
}

func (d *Handlers) gitPush(ctx context.Context, c *rest.Call, p rest.InConversation, b api.GitPush) (rest.None, error) {
	folder, err := inWorkspace("repository", b.Repository.Value)
	if err != nil {
		return rest.None{}, inBody(err)
	}
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	return rest.None{}, rest.WhyEnded(ctx, d.Reviews.Push(ctx, c.Who.User, session.ID(p.ID), folder, b.Branch))
}

func (d *Handlers) openPullRequest(ctx context.Context, c *rest.Call, p rest.InConversation, b api.OpenPullRequest) (api.OpenedPullRequest, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	made, err := d.Reviews.Propose(ctx, c.Who.User, session.ID(p.ID), review.Proposal{Title: b.Title, Body: b.Body.Value, Source: b.Source, Target: b.Target, Draft: b.Draft.Value, Reviewers: b.Reviewers.Value})
	return api.OpenedPullRequest{PullRequest: pullRequest(made.RequestOpened), Draft: made.Draft, Known: made.Known, Warning: made.Warning}, rest.WhyEnded(ctx, err)
}

func (d *Handlers) pullRequests(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) ([]api.ReviewedPullRequest, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	found, err := d.Reviews.Requests(ctx, c.Who.User, session.ID(p.ID))
	out := make([]api.ReviewedPullRequest, len(found))
	for i, r := range found {
		out[i] = api.ReviewedPullRequest{PullRequest: pullRequest(r.RequestOpened), State: r.State, Draft: r.Draft, Checks: append([]string{}, r.Checks...), Comments: append([]string{}, r.Comments...), Problem: r.Problem}
	}
	return out, rest.WhyEnded(ctx, err)
}

func pullRequest(r session.RequestOpened) api.PullRequest {
	return api.PullRequest{Provider: r.Provider, Repository: r.Repository, Number: r.Number, URL: r.URL, Title: r.Title, Source: r.Source, Target: r.Target}
}
