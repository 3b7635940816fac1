package sandbox

import "context"

// GitChange is a file that differs from where the work began.
type GitChange struct {
	// Status is M, A, D or U (conflict). A rename is a D and an A.
	Status string `json:"status"`
	// Path is relative to the workspace; its bytes are those of the name.
	Path []byte `json:"path"`
}

// GitChanges lists what was changed in the repositories of the workspace: in
// the workspace itself, or in the folders one level below it. They are compared
// with the first of: the branch at origin, where the branch left the default
// one, the default branch at origin, nothing at all. ErrNoRepo if there is none.
func (s *Sandbox) GitChanges(ctx context.Context) ([]GitChange, error) {
	var out []GitChange
	return out, s.peer.Call(ctx, "git/changes", 0, nil, &out)
}

// GitDiff is a file before and now. Either is nil when there was, or is, none.
type GitDiff struct {
	Original *string `json:"original"`
	Modified *string `json:"modified"`
}

// GitDiff compares one file of the workspace. ErrTooBig above 1 MB, ErrBinary
// for what is not a text, ErrEscapes for what lies outside.
func (s *Sandbox) GitDiff(ctx context.Context, path []byte) (GitDiff, error) {
	var d GitDiff
	return d, s.peer.Call(ctx, "git/diff", 0, PathParams{Path: path, Within: true}, &d)
}
