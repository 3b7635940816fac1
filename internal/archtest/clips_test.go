package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

const whyClip = "each copy cut characters in half or counted differently; use or extend internal/clip"

// clipNames are what the copies of internal/clip were called.
var clipNames = regexp.MustCompile(`(?i)^(?:clip|cut|shorten|shortened|truncate|ellipsis|abbreviate|oneline|firstline|cutmiddle)$`)

// clipExempt are the packages that may have such a function, and why.
var clipExempt = []string{
	"internal/clip",
	"internal/terminal", // counts columns of the screen
}

const whyMark = "secrets are masked beside the mark of a cut only; use clip.Bytes, clip.Runes or clip.Middle, or add a mark beside the cut and list the file"

// unmarked are the files that cut texts without the help of a mark, and why.
var unmarked = map[string]string{
	"internal/agent/recall.go":            "the user's own message, for a search",
	"internal/gitprovider/githubhook.go":  "the name of an action",
	"internal/gitprovider/gitlab/hook.go": "the name of an action",
	"internal/knowledge/recall.go":        "followed by note, which starts with a mark; and a message, for a search",
	"internal/knowledge/shelf.go":         "followed by note, which starts with a mark",
	"internal/profile/recall.go":          "follows a mark",
	"internal/sandbox/egress/exchange.go": "fields with a maximum length",
	"internal/sandbox/runner/mcp/tail.go": "follows a mark",
	"internal/trigger/answer.go":          "followed by a mark",
	"internal/trigger/event.go":           "the name of an event",
	"internal/trigger/receive.go":         "names and addresses",
}

// cutsWithoutMark finds texts that are cut without a mark.
func cutsWithoutMark(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		for _, f := range p.files {
			name := localName(f.ast, "deckhand/internal/clip")
			if f.test || name == "" || unmarked[f.path] != "" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok && (selects(e, name, "Start") || selects(e, name, "End")) {
					found = append(found, finding{t.at(n.Pos()), "a text is cut without a mark", whyMark})
				}
				return true
			})
		}
	}
	return found
}

func TestCutsHaveMarks(t *testing.T) { report(t, cutsWithoutMark(repository(t))) }

func TestCutsHaveMarksCatch(t *testing.T) {
	check := func(body string) []finding {
		return cutsWithoutMark(planted(t, map[string]string{"internal/live/live.go": "package live\n\nimport \"deckhand/internal/clip\"\n\n" + body + "\n"}))
	}
	report(t, check("func f(s string) string { return clip.Bytes(s, 5) }"))
	caught(t, check("func f(s string) string { return clip.Start(s, 5) }"), "internal/live/live.go", "without a mark")
}

// clips finds functions that shorten a text and are not in internal/clip.
func clips(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if slices.Contains(clipExempt, p.dir) {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && clipNames.MatchString(fn.Name.Name) && textToText(fn.Type) {
					found = append(found, finding{t.at(fn.Pos()), fmt.Sprintf("%s shortens a text", fn.Name.Name), whyClip})
				}
			}
		}
	}
	return found
}

// textToText reports functions from a string, and perhaps a length, to a string.
func textToText(fn *ast.FuncType) bool {
	if fn.Results.NumFields() != 1 || fn.Params.NumFields() == 0 {
		return false
	}
	isString := func(f *ast.Field) bool {
		id, ok := f.Type.(*ast.Ident)
		return ok && id.Name == "string"
	}
	return isString(fn.Params.List[0]) && isString(fn.Results.List[0])
}

func TestClips(t *testing.T) { report(t, clips(repository(t))) }

func TestClipsCatch(t *testing.T) {
	check := func(body string) []finding {
		return clips(planted(t, map[string]string{"internal/live/live.go": "package live\n\n" + body + "\n"}))
	}
	report(t, check("func cut(b []byte) []byte { return b }\n\nfunc (a A) clip(s string) string { return s }\n\nfunc cutPort(s string) string { return s }"))
	caught(t, check("func clip(s string, n int) string { return s[:n] }"), "internal/live/live.go", "clip")
	caught(t, check("func oneLine(s string) string { return s }"), "internal/live/live.go", "oneLine")
}
