package api

// GitReview answers GET …/git/review.
type GitReview struct {
	Repositories []ReviewRepository `json:"repositories"`
	Files        []GitFile          `json:"files"`
	Added        int                `json:"added" doc:"Added lines in all files."`
	Removed      int                `json:"removed" doc:"Removed lines in all files."`
}

// ReviewRepository is a repository of the workspace.
type ReviewRepository struct {
	Name     string   `json:"name" doc:"Folder in the workspace; empty for the workspace itself."`
	Branch   string   `json:"branch" doc:"Branch that is checked out; empty if none is."`
	Head     string   `json:"head" doc:"ID of the last commit; empty if there is none."`
	Default  string   `json:"default_branch" doc:"Default branch at origin; empty if unknown."`
	Branches []string `json:"branches" doc:"The newest branches, for range=branch."`
}

// GitFile is a changed file.
type GitFile struct {
	Status   string  `json:"status" enum:"M,A,D,R,U" doc:"M modified, A added, D deleted, R renamed, U unmerged."`
	Path     string  `json:"path" doc:"Path relative to the workspace, escaped as in list-files."`
	From     *string `json:"from" doc:"Old path of a renamed file; otherwise null."`
	Added    int     `json:"added" doc:"Added lines; 0 for a binary file."`
	Removed  int     `json:"removed" doc:"Removed lines; 0 for a binary file."`
	Binary   bool    `json:"binary"`
	Staged   bool    `json:"staged" doc:"The index differs from the last commit."`
	Unstaged bool    `json:"unstaged" doc:"The workspace differs from the index."`
	ETag     string  `json:"etag" doc:"Version of the change. Send it to revert the file."`
}

// GitComparison answers GET …/git/compare.
type GitComparison struct {
	Original *string `json:"original" doc:"Content before; null if the file did not exist. Images are data: URLs."`
	Modified *string `json:"modified" doc:"Content after; null if the file does not exist. Images are data: URLs."`
	Image    bool    `json:"image" doc:"The contents are data: URLs of images."`
	ETag     string  `json:"etag" doc:"Version of the change. Send it to revert the file or a hunk."`
	// Unfit is only there if it was asked for.
	Unfit *Unfit `json:"unfit,omitempty" doc:"Reason why there are no contents. Only with unfit=told."`
}

// GitRevertFile is a file to revert.
type GitRevertFile struct {
	Path string      `json:"path" minLength:"1" maxLength:"12288"`
	From Opt[string] `json:"from,omitzero" maxLength:"12288" doc:"Old path, if the file was renamed."`
	ETag string      `json:"etag" minLength:"64" maxLength:"64" doc:"The etag from review or compare."`
}

// GitHunk is a part of a file.
type GitHunk struct {
	OriginalStart int `json:"original_start" minimum:"1" doc:"First line in the original, counted from 1. For an added hunk, the line before which it was added."`
	OriginalLines int `json:"original_lines" minimum:"0"`
	ModifiedStart int `json:"modified_start" minimum:"1"`
	ModifiedLines int `json:"modified_lines" minimum:"0"`
}

// GitRevert is the body of POST …/git/revert.
type GitRevert struct {
	Range  string          `json:"range" enum:"upstream,start,turn,head,unstaged,branch" doc:"Range that the files were shown in. They are reverted to what it compares with."`
	Branch Opt[string]     `json:"branch,omitzero" maxLength:"255" doc:"For range branch."`
	Files  []GitRevertFile `json:"files" minItems:"1" maxItems:"50000"`
	Hunk   *GitHunk        `json:"hunk,omitempty" doc:"Reverts only this part. Requires exactly one file."`
}

// GitStage is the body of POST …/git/stage.
type GitStage struct {
	Paths  []string `json:"paths" minItems:"1" maxItems:"50000"`
	Staged bool     `json:"staged" doc:"true stages the files, false unstages them."`
}

// GitDraft is the body of POST …/git/commit-message.
type GitDraft struct {
	Repository Opt[string] `json:"repository,omitzero" maxLength:"12288" doc:"Name of the repository as in review. Default: the workspace itself."`
	StagedOnly Opt[bool]   `json:"staged_only,omitzero" doc:"Describes only staged changes. Default: false."`
}

// GitMessage answers POST …/git/commit-message.
type GitMessage struct {
	Message string `json:"message"`
	Model   bool   `json:"model" doc:"The model wrote the message. If false, the message lists the changed files."`
}

// GitCommit is the body of POST …/git/commit.
type GitCommit struct {
	Repository Opt[string] `json:"repository,omitzero" maxLength:"12288" doc:"Name of the repository as in review. Default: the workspace itself."`
	Message    string      `json:"message" minLength:"1" maxLength:"60000"`
	Branch     Opt[string] `json:"branch,omitzero" maxLength:"255" doc:"Creates and checks out this branch first, unless it is checked out already."`
	StagedOnly Opt[bool]   `json:"staged_only,omitzero" doc:"Commits only staged changes. Default: false, which stages all changes first."`
}

// GitCommitted answers POST …/git/commit.
type GitCommitted struct {
	Commit string `json:"commit" doc:"ID of the commit."`
	Branch string `json:"branch"`
}

// GitPush is the body of POST …/git/push.
type GitPush struct {
	Repository Opt[string] `json:"repository,omitzero" maxLength:"12288" doc:"Name of the repository as in review. Default: the workspace itself."`
	Branch     string      `json:"branch" minLength:"1" maxLength:"255" doc:"Branch at the git provider. It is never overwritten with other commits."`
}

// OpenPullRequest is the body of POST …/git/pull-request.
type OpenPullRequest struct {
	Title     string        `json:"title" minLength:"1" maxLength:"255"`
	Body      Opt[string]   `json:"body,omitzero" maxLength:"60000" doc:"Description in Markdown."`
	Source    string        `json:"source_branch" minLength:"1" maxLength:"255" doc:"Branch that was pushed."`
	Target    string        `json:"target_branch" minLength:"1" maxLength:"255"`
	Draft     Opt[bool]     `json:"draft,omitzero"`
	Reviewers Opt[[]string] `json:"reviewers,omitzero" maxItems:"20" doc:"User names at the git provider."`
}

// OpenedPullRequest answers POST …/git/pull-request.
type OpenedPullRequest struct {
	PullRequest
	Draft   bool   `json:"draft"`
	Known   bool   `json:"already_open" doc:"A pull request between these branches was already open."`
	Warning string `json:"warning" doc:"What failed, such as requesting reviews; empty if nothing did."`
}

// ReviewedPullRequest is a pull request with its checks and comments.
type ReviewedPullRequest struct {
	PullRequest
	State    string   `json:"state" doc:"open, closed or merged; empty if unknown."`
	Draft    bool     `json:"draft"`
	Checks   []string `json:"checks" doc:"Checks of the newest commit as name: state, failed ones first."`
	Comments []string `json:"comments" doc:"Comments and reviews, oldest first. Each starts with the author; a comment on a line also with file:line."`
	Problem  string   `json:"problem" doc:"Reason why the git provider did not show the pull request; empty if it did."`
}
