package review

import "testing"

// Reverting git's own files would break the repository.
func TestOutsideGit(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"a/b.go": true, ".github/x": true, ".gitignore": true, ".git/HEAD": false, "sub/.GIT/config": false, ".git": false} {
		if got := outsideGit([]byte(path)) == nil; got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
