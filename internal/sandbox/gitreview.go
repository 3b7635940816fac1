package sandbox

import (
	"context"
)

// The ranges of a review: what the workspace is compared with.
const (
	RangeUpstream = "upstream" // as GitChanges
	RangeStart    = "start"    // the files before the agent's first call
	RangeTurn     = "turn"     // the files before the first call after the last message of the user
	RangeHead     = "head"     // the last commit
	RangeStaged   = "staged"   // the index with the last commit
	RangeUnstaged = "unstaged" // the workspace with the index
	RangeBranch   = "branch"   // the merge base with a branch
)

// GitRange is one of the ranges; Branch is set only for RangeBranch.
type GitRange struct {
	Kind   string `json:"kind,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// GitFile is a changed file of a review.
type GitFile struct {
	// Status is M, A, D, R (renamed) or U (conflict).
	Status string `json:"status"`
	Path   []byte `json:"path"`
	From   []byte `json:"from,omitempty"` // its old path if it was renamed
	// Added and Removed count lines. Both are 0 if the file is Binary.
	Added   int  `json:"added"`
	Removed int  `json:"removed"`
	Binary  bool `json:"binary,omitempty"`
	// Staged and Unstaged say whether it differs in the index from the last commit, and
	// in the workspace from the index.
	Staged   bool `json:"staged,omitempty"`
	Unstaged bool `json:"unstaged,omitempty"`
	// ETag changes when one of the compared versions does.
	ETag string `json:"etag"`
}

// GitRepo is a repository of the workspace.
type GitRepo struct {
	// Name is the folder in the workspace, empty for the workspace itself.
	Name []byte `json:"name"`
	// Branch is empty if none is checked out, Head if there is no commit.
	Branch string `json:"branch"`
	Head   string `json:"head"`
	// Default is the default branch at origin, if it is known.
	Default string `json:"default"`
	// Branches are the newest branches that the workspace can be compared with.
	Branches []string `json:"branches"`
}

// GitReview has the changes of a range.
type GitReview struct {
	Repos []GitRepo `json:"repos"`
	Files []GitFile `json:"files"`
}

// GitReview lists the changes of a range. ErrNoRepo as GitChanges.
func (s *Sandbox) GitReview(ctx context.Context, r GitRange) (GitReview, error) {
	var out GitReview
	return out, s.call(ctx, "git/review", 0, r, &out)
}

// GitCompareParams names a file and, if it was renamed, its old path.
type GitCompareParams struct {
	GitRange
	Path []byte `json:"path"`
	From []byte `json:"from,omitempty"`
}

// GitVersion is one version of a file, nil where there is none.
type GitVersion struct {
	Data []byte `json:"data"`
	// Text is the decoded content; nil if it is not text.
	Text *string `json:"text"`
}

// GitComparison is a file before and after.
type GitComparison struct {
	Original *GitVersion `json:"original"`
	Modified *GitVersion `json:"modified"`
	ETag     string      `json:"etag"`
}

// GitCompare is GitDiff for a range. A file that is not text has no Text.
func (s *Sandbox) GitCompare(ctx context.Context, p GitCompareParams) (GitComparison, error) {
	var out GitComparison
	return out, s.call(ctx, "git/compare", 0, p, &out)
}

// GitRevertFile is a file to revert, as a review with the ETag showed it.
type GitRevertFile struct {
	Path []byte `json:"path"`
	From []byte `json:"from,omitempty"`
	ETag string `json:"etag"`
}

// GitRevertParams reverts files to the base of the range.
type GitRevertParams struct {
	GitRange
	Files []GitRevertFile `json:"files"`
}

// GitRevert reverts files. If one of them has changed since the review, nothing is reverted
// and the error is ErrChanged. ErrBusy if another git command is running in the repository.
func (s *Sandbox) GitRevert(ctx context.Context, p GitRevertParams) error {
	return s.call(ctx, "git/revert", s.fence, p, nil)
}

// GitStageParams stages or unstages changed files.
type GitStageParams struct {
	Paths  [][]byte `json:"paths"`
	Staged bool     `json:"staged"`
}

// GitStage stages or unstages files.
func (s *Sandbox) GitStage(ctx context.Context, p GitStageParams) error {
	return s.call(ctx, "git/stage", s.fence, p, nil)
}

// GitCommitParams commits in the repository with this name.
type GitCommitParams struct {
	Repo    []byte `json:"repo"`
	Message string `json:"message"`
	// Branch is created and checked out first, unless it is checked out already.
	Branch string `json:"branch,omitempty"`
	// StagedOnly commits only staged changes.
	StagedOnly bool   `json:"staged_only,omitempty"`
	Name       string `json:"name"` // of the author
	Email      string `json:"email"`
}

// GitCommitted is a commit.
type GitCommitted struct {
	Commit string `json:"commit"`
	Branch string `json:"branch"`
}

// GitCommit commits without running hooks. ErrInvalid says why there is nothing to commit.
func (s *Sandbox) GitCommit(ctx context.Context, p GitCommitParams) (GitCommitted, error) {
	var out GitCommitted
	return out, s.call(ctx, "git/commit", s.fence, p, &out)
}

// GitMarkParams names a turn by the number of the user's message.
type GitMarkParams struct {
	Turn int64 `json:"turn"`
	// First is true in the first turn. Repositories that exist before its first call belong to the user.
	First bool `json:"first,omitempty"`
	// Conversation is the ID of the conversation.
	Conversation string `json:"conversation,omitempty"`
}

// GitMark records the files of all repositories as they are before a turn.
func (s *Sandbox) GitMark(ctx context.Context, p GitMarkParams) error {
	return s.peer.Call(ctx, "git/mark", s.fence, p, nil)
}
