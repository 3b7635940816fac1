package sandbox

import "context"

// GrepParams says what to look for in files.
type GrepParams struct {
	// Pattern is a regular expression (RE2), which is held against each line.
	Pattern string `json:"pattern"`
	// Path is a folder or a file; "" is the workspace, and relative paths begin there.
	Path string `json:"path,omitempty"`
	// Include is a glob that files must fit, as in GlobParams; "" is all files.
	Include    string `json:"include,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	// Context is how many lines to give around each line that fits.
	Context int `json:"context,omitempty"`
}

// GrepResult is what was found.
type GrepResult struct {
	// Root is where was searched, as an absolute path.
	Root []byte `json:"root"`
	// Files have lines that fit; the file that was changed last comes first.
	Files []GrepFile `json:"files"`
	// Matches is how many lines fit, of those that were looked at.
	Matches int `json:"matches"`
	// More says that there may be further lines in further files.
	More bool `json:"more,omitempty"`
	// Unfinished says that time ran out, or that there are too many files to look at.
	Unfinished bool `json:"unfinished,omitempty"`
	// Large is how many files were left out because they are too large.
	Large int `json:"large,omitempty"`
}

// GrepFile is a file with lines that fit. Some of them are left out when there
// are more Matches than a file is given room for.
type GrepFile struct {
	Path    []byte     `json:"path"`
	Matches int        `json:"matches"`
	Lines   []GrepLine `json:"lines"`
}

// GrepLine is a line that fits, or one around it.
type GrepLine struct {
	Number int `json:"number"`
	// Text is valid UTF-8, and only the part around the match of a long line.
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"`
}

// GlobParams says which names to look for.
type GlobParams struct {
	// Pattern may have * and ? and [a-z] for characters, {a,b} for one of several,
	// and ** for any number of folders. Without a slash it is held against names
	// in all folders, with one against paths below Path; absolute, it says itself
	// where to look. With a slash at its end it finds folders, else files.
	Pattern string `json:"pattern"`
	// Path is a folder, as in GrepParams.
	Path string `json:"path,omitempty"`
}

// GlobResult is what was found.
type GlobResult struct {
	Root []byte `json:"root"`
	// Paths are absolute; what was changed last comes first.
	Paths [][]byte `json:"paths"`
	// Total is how many there are, also those that are not listed.
	Total      int  `json:"total"`
	Unfinished bool `json:"unfinished,omitempty"`
}

// Grep looks for lines. What git ignores, binary files, and what lies in .git is left out, and
// symbolic links are not followed. ErrInvalid says what is wrong with the request, in words for
// its author.
func (s *Sandbox) Grep(ctx context.Context, p GrepParams) (GrepResult, error) {
	var r GrepResult
	return r, s.call(ctx, "grep", 0, p, &r)
}

// Glob looks for names, in the same files as Grep.
func (s *Sandbox) Glob(ctx context.Context, p GlobParams) (GlobResult, error) {
	var r GlobResult
	return r, s.call(ctx, "glob", 0, p, &r)
}
