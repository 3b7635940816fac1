package gitprovider

import (
	"regexp"
	"strings"
)

var (
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_~][A-Za-z0-9._~-]*(/[A-Za-z0-9_.~][A-Za-z0-9._~-]*)+$`)
	branchName     = regexp.MustCompile(`^[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]*$`)
)

// ValidRepository reports whether a name is owner/name (GitLab: any depth) and cannot be
// interpreted otherwise by git or in a URL.
func ValidRepository(name string) bool {
	if !repositoryName.MatchString(name) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

// ValidBranch reports whether git allows the name and it cannot be mistaken for an
// option.
func ValidBranch(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return branchName.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.Contains(name, "//") &&
		!strings.HasPrefix(name, "/") && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, ".") && name != "@" && name != "HEAD"
}
