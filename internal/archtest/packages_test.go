package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// minComment is the length below which a package comment only repeats the name.
const minComment = 40

// badNames say nothing about what is inside, and so attract everything.
var badNames = []string{"util", "utils", "common", "types", "models", "service", "manager", "core", "pkg", "helpers"}

// comments finds packages that do not say what they are for.
func comments(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		longest := 0
		for _, f := range p.files {
			longest = max(longest, len(strings.TrimSpace(f.ast.Doc.Text())))
		}
		if longest <= minComment {
			found = append(found, finding{
				p.dir,
				fmt.Sprintf("the package comment has %d characters, wanted more than %d", longest, minComment),
				"a newcomer reads package comments first; put into doc.go what the package is for and what it does not know",
			})
		}
	}
	return found
}

// names finds packages that are called after nothing.
func names(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		for _, name := range slices.Compact([]string{path.Base(p.dir), p.name}) {
			if slices.Contains(badNames, name) {
				found = append(found, finding{
					p.dir,
					fmt.Sprintf("%q is not a name for a package", name),
					"a package called after nothing collects everything; call it after what it holds (session, live, secret)",
				})
			}
		}
	}
	return found
}

func TestPackageComments(t *testing.T) { report(t, comments(repository(t))) }

func TestPackageNames(t *testing.T) { report(t, names(repository(t))) }
