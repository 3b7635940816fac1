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
