package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unwanted is a text that must not be committed.
type unwanted struct {
	what string
	text *regexp.Regexp
	part []string // one of them is in every such text: most files need no closer look
	in   []string // base names of files that the rule binds; none means all
	why  string
	// breach is a line that the rule must catch. The @ is taken out first: without
	// it the line would be caught in this very file.
	breach string
}

var texts = []unwanted{
	{
		what:   "the absolute path of somebody's home",
		text:   regexp.MustCompile(`(?:^|[^\w.~-])/(?:home|Users)/[\w.-]+`),
		part:   []string{"/home/", "/Users/"},
		why:    "it works on one machine only, and tells whose; use a path relative to the repository, or t.TempDir in a test",
		breach: "cd /ho@me/maria/src",
	},
	{
		what:   "a path in the home of root",
		text:   regexp.MustCompile(`(?:^|[^\w.~-])/root/(?:go|src|work|deckhand)\b`),
		part:   []string{"/root/"},
		why:    "it works on one machine only; use a path relative to the repository, or t.TempDir in a test",
		breach: "ls /ro@ot/go/bin",
	},
	{
		what:   "a lockfile that names where a package was downloaded",
		text:   regexp.MustCompile(`"?resolved"?:? "https?:`),
		part:   []string{"resolved"},
		in:     []string{"package-lock.json", "npm-shrinkwrap.json", "yarn.lock"},
		why:    "the address is that of one machine's registry; with omit-lockfile-registry-resolved the integrity hash alone decides",
		breach: `"resol@ved": "https://host.example/x.tgz",`,
	},
}

// examplePeople are the homes that documentation may show.
var examplePeople = []string{"user", "you", "me", "deckhand", "agent"}

// workplace makes the rule for this machine: the folder that the repository
// lies in must not be named. Folders that exist on every machine say nothing.
func workplace(root string) (unwanted, bool) {
	parent := filepath.ToSlash(filepath.Dir(root))
	first, _, _ := strings.Cut(strings.TrimPrefix(parent, "/"), "/")
	everywhere := []string{"", "tmp", "usr", "opt", "srv", "var", "mnt", "home", "Users", "root", "workspace"}
	if slices.Contains(everywhere, first) {
		return unwanted{}, false
	}
	return unwanted{
		what: "the absolute path of this machine's workplace",
		text: regexp.MustCompile(`(?:^|[^\w.~-])` + regexp.QuoteMeta(parent) + `/[\w.-]`),
		part: []string{parent + "/"},
		why:  "it works on one machine only; use a path relative to the repository, or t.TempDir in a test",
	}, true
}

// check finds the text in all files that are text.
func (u unwanted) check(t *tree) []finding {
	var found []finding
	for _, p := range t.paths {
		if len(u.in) > 0 && !slices.Contains(u.in, path.Base(p)) {
			continue
		}
		src, err := fs.ReadFile(t.fsys, p)
		if err != nil || bytes.IndexByte(src, 0) >= 0 || !slices.ContainsFunc(u.part, func(part string) bool { return bytes.Contains(src, []byte(part)) }) {
			continue // gone meanwhile, not a text, or clean
		}
		n := 0
		for line := range strings.Lines(string(src)) {
			n++
			hit := u.text.FindString(line)
			if hit == "" || ofExample(hit) {
				continue
			}
			found = append(found, finding{fmt.Sprintf("%s:%d", p, n), fmt.Sprintf("%s: %q", u.what, hit), u.why})
		}
	}
	return found
}

// ofExample reports the home of a made-up person.
func ofExample(hit string) bool {
	return slices.ContainsFunc(examplePeople, func(name string) bool { return strings.HasSuffix(hit, "/"+name) })
}

// maxReadme is the length a person reads before trying.
const maxReadme = 150

// readme finds a README that became a manual.
func readme(t *tree) []finding {
	src, err := fs.ReadFile(t.fsys, "README.md")
	if err != nil {
		return nil // not written yet
	}
	if n := bytes.Count(src, []byte("\n")); n > maxReadme {
		return []finding{{
			"README.md",
			fmt.Sprintf("%d lines, wanted at most %d", n, maxReadme),
			"the README brings a reader to a running server; what comes after belongs into docs",
		}}
	}
	return nil
}

var (
	fence = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	code  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)`)
)

// links finds relative links in Markdown files that lead nowhere.
func links(t *tree) []finding {
	var found []finding
	for _, p := range t.paths {
		if path.Ext(p) != ".md" || strings.Contains(p, "testdata/") {
			continue
		}
		src, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			continue
		}
		text := code.ReplaceAllString(fence.ReplaceAllString(string(src), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") || strings.HasPrefix(target, "/") {
				continue // within the page, or on another machine
			}
			to := path.Join(path.Dir(p), target)
			if _, err := fs.Stat(t.fsys, to); err != nil {
				found = append(found, finding{p, fmt.Sprintf("links to %s, which is not there", target), "a link that leads nowhere costs the reader's trust in the rest of the page"})
			}
		}
	}
	return found
}

func TestNothingPrivateCommitted(t *testing.T) {
	repo := repository(t)
	rules := texts
	if here, ok := workplace(root(t)); ok {
		rules = append(slices.Clone(texts), here)
	}
	for _, u := range rules {
		report(t, u.check(repo))
	}
}

func TestReadmeLength(t *testing.T) { report(t, readme(repository(t))) }

func TestLinks(t *testing.T) { report(t, links(repository(t))) }
