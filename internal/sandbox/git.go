package sandbox

import "context"

// GitChange is a file that differs from the base of the work.
type GitChange struct {
	// Status is M, A, D or U (conflict). A rename is a D and an A.
	Status string `json:"status"`
	// Path is relative to the workspace; its bytes are those of the name.
	Path []byte `json:"path"`
}

// GitChanges lists the changes in the repositories of the workspace: in the workspace
// itself, or in the folders one level below it. They are compared with the first of: the
// branch at origin, the merge base with the default branch, the default branch at origin,
// an empty tree. ErrNoRepo if there is no repository.
func (s *Sandbox) GitChanges(ctx context.Context) ([]GitChange, error) {
	var out []GitChange
	return out, s.call(ctx, "git/changes", 0, nil, &out)
}

// GitDiff is a file before and after. Either is nil if the file did not, or does not,
// exist.
type GitDiff struct {
	Original *string `json:"original"`
	Modified *string `json:"modified"`
}

// GitDiff compares one file of the workspace. ErrTooBig above 1 MB, ErrBinary if it is
// not text, ErrEscapes if it is outside of the workspace.
func (s *Sandbox) GitDiff(ctx context.Context, path []byte) (GitDiff, error) {
	var d GitDiff
	return d, s.call(ctx, "git/diff", 0, PathParams{Path: path, Within: true}, &d)
}
