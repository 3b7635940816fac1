package settings

import (
	"regexp"
	"strings"
)

// The grammar of image references, as the registries' reference implementation has it.
var (
	imageDomain = regexp.MustCompile(`^(?:(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])(?:\.(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]))*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$`)
	imagePath   = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	imageTag    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
	imageID     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// validImage reports whether s is [registry[:port]/]path[:tag][@digest].
func validImage(s string) bool {
	name, digest, hasDigest := strings.Cut(s, "@")
	if hasDigest && !validDigest(digest) {
		return false
	}
	// A colon after the last slash begins a tag; one before belongs to a port.
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		if !imageTag.MatchString(name[i+1:]) {
			return false
		}
		name = name[:i]
	}
	// The whole name is taken for an image's id by the engines, not for a name.
	if imageID.MatchString(name) || len(name) > 255 {
		return false
	}
	if first, rest, ok := strings.Cut(name, "/"); ok && isRegistry(first) {
		return imageDomain.MatchString(first) && imagePath.MatchString(rest)
	}
	return imagePath.MatchString(name)
}

// isRegistry tells a registry from the first part of a path, the way the engines do.
func isRegistry(part string) bool {
	return part == "localhost" || strings.ContainsAny(part, ".:[") || strings.ToLower(part) != part
}

// validDigest knows the lengths of the usual algorithms; others pass by their form.
func validDigest(d string) bool {
	if !imageDigest.MatchString(d) {
		return false
	}
	algorithm, hex, _ := strings.Cut(d, ":")
	if n, ok := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]; ok {
		return len(hex) == n && strings.ToLower(hex) == hex
	}
	return true
}
