package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	whySummary = "an API summary is a short label that starts with a verb and names its object, such as \"List your webhooks\"; details belong in the description"
	whyBanned  = "texts for users name the thing and use the usual technical word: \"never expires\", not \"good for ever\"; \"queued\", not \"waits\""

	whyComment = "a comment names the actor or the thing: \"the caller has left\", not \"nobody waits\"; \"permanently\", not \"for ever\""

	maxSummary = 80
)

// summaryVerbs are the words that a summary may start with. The two kinds of probes are known by their names.
var summaryVerbs = []string{
	"Accept", "Add", "Approve,", "Call", "Check", "Compare", "Complete", "Create", "Delete", "Disable", "Download", "End", "Exchange", "Export", "Fork", "Generate",
	"Get", "List", "Log", "Open", "Permanently", "Rate", "Read", "Receive", "Redo", "Refresh", "Rename", "Replace", "Reset", "Restore", "Retry", "Revoke", "Search",
	"Send", "Set", "Show", "Start", "Stop", "Store", "Stream", "Submit", "Test", "Trust", "Undo", "Update", "Upload", "Write",
	"Liveness", "Readiness",
}

// banned are words that hide what is meant. They are looked for in summaries, in flag help and in the documentation of fields.
var banned = regexp.MustCompile(`(?i)\b(?:nobody|somebody|everybody|anybody|whoever|whom|shall|meanwhile|for ever|of ours|beside|not good|is good|let in|lock(?:ed|s)? out|the same for|become of|became of|is told|are told|were told|was told)\b`)

// wording checks the texts of the API table, and of the struct tags that flags and schemas are made from.
func wording(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "summary") {
						found = append(found, summary(t, n.Value)...)
					}
				case *ast.Field:
					found = append(found, tagTexts(t, n.Tag)...)
				}
				return true
			})
		}
	}
	return found
}

func summary(t *tree, value ast.Expr) []finding {
	lit, ok := value.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return nil
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return nil
	}
	var found []finding
	breach := func(format string, args ...any) {
		found = append(found, finding{t.at(lit.Pos()), fmt.Sprintf("the summary %q ", text) + fmt.Sprintf(format, args...), whySummary})
	}
	if first, _, _ := strings.Cut(text, " "); !slices.Contains(summaryVerbs, first) {
		breach("does not start with a verb of the list summaryVerbs")
	}
	if len(text) > maxSummary {
		breach("has %d characters, wanted at most %d", len(text), maxSummary)
	}
	if strings.HasSuffix(text, ".") {
		breach("ends with a period")
	}
	if word := banned.FindString(text); word != "" {
		breach("has the word %q", word)
	}
	return found
}

func tagTexts(t *tree, lit *ast.BasicLit) []finding {
	if lit == nil {
		return nil
	}
	tag, err := strconv.Unquote(lit.Value)
	if err != nil {
		return nil
	}
	var found []finding
	for _, key := range []string{"help", "doc"} {
		if word := banned.FindString(reflect.StructTag(tag).Get(key)); word != "" {
			found = append(found, finding{t.at(lit.Pos()), fmt.Sprintf("%s text has the word %q", key, word), whyBanned})
		}
	}
	return found
}

func TestWording(t *testing.T) { report(t, wording(repository(t))) }

func TestWordingCatches(t *testing.T) {
	const file = "internal/httpapi/table.go"
	check := func(body string) []finding {
		return wording(planted(t, map[string]string{file: "package httpapi\n\ntype route struct{ summary string }\n\n" + body + "\n"}))
	}
	report(t, check(`var r = route{summary: "List your webhooks"}`))
	report(t, check("type q struct {\n\tN int `help:\"Number of keys.\" doc:\"Number of keys.\"`\n}"))
	for what, body := range map[string]string{
		"does not start with a verb":        `var r = route{summary: "Your webhooks"}`,
		"ends with a period":                `var r = route{summary: "List your webhooks."}`,
		"wanted at most 80":                 `var r = route{summary: "List ` + strings.Repeat("very ", 16) + `long names"}`,
		`has the word "nobody"`:             `var r = route{summary: "List keys that nobody uses"}`,
		`help text has the word "for ever"`: "type q struct {\n\tN int `help:\"Default: for ever.\"`\n}",
		`doc text has the word "Somebody"`:  "type q struct {\n\tN int `json:\"n\" doc:\"Somebody else.\"`\n}",
	} {
		caught(t, check(body), file, what)
	}
}

// vague are the words that comments do without. They stand for an actor or a time that the sentence should name.
var vague = regexp.MustCompile(`(?i)\b(?:nobody|somebody|everybody|anybody|whoever|whom|shall|for ever|of ours|meanwhile)\b`)

// vagueLimits are the packages from before the rule, with how many such words their comments may have. Numbers here only
// go down, and no package is added.
var vagueLimits = map[string]int{
	"internal/agent":                 1,
	"internal/cli":                   8,
	"internal/cli/admin":             1,
	"internal/httpapi/conversations": 1,
	"internal/httpapi/files":         2,
	"internal/trigger":               2,
}

// vagueComments counts vague words in the comments of each package outside of test files.
func vagueComments(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		var here []finding
		for _, f := range p.files {
			if strings.HasSuffix(f.path, "_test.go") || ast.IsGenerated(f.ast) {
				continue
			}
			for _, group := range f.ast.Comments {
				for _, c := range group.List {
					for _, word := range vague.FindAllString(c.Text, -1) {
						here = append(here, finding{t.at(c.Pos()), fmt.Sprintf("the comment has the word %q", word), whyComment})
					}
				}
			}
		}
		if len(here) > vagueLimits[p.dir] {
			found = append(found, here...)
		}
	}
	return found
}

func TestVagueComments(t *testing.T) { report(t, vagueComments(repository(t))) }

func TestVagueCommentsCatches(t *testing.T) {
	check := func(name, comment string) []finding {
		return vagueComments(planted(t, map[string]string{name: "package x\n\n" + comment + "\nvar X int\n"}))
	}
	report(t, check("internal/x/x.go", "// X is kept permanently."))
	report(t, check("internal/x/x_test.go", "// X is what nobody reads."))
	caught(t, check("internal/x/x.go", "// X is what nobody reads."), "internal/x/x.go", `has the word "nobody"`)
	caught(t, check("internal/x/x.go", "// X is kept for ever."), "internal/x/x.go", `has the word "for ever"`)
}
