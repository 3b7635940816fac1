package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	whyUseCases = "what users and agents ask for goes through internal/conversation, where it is refused with the same code at every entry point"
	whySessions = "this rule finds writers by the name: call a *session.Sessions sessions"
)

// useCases is the package that creates and changes conversations for others.
const useCases = "internal/conversation"

// sessionWriters are the other packages that write to sessions, and why. They record what happened, not what someone asked
// for, so there is nothing to refuse. None of them creates a session.
var sessionWriters = map[string]string{
	"internal/agent":        "the loop records its own steps under its claim",
	"internal/agent/idle":   "stops conversations in which nothing happens",
	"internal/checkout":     "records the clone and the scripts of a repository",
	"internal/gitaccess":    "records whether a repository is trusted",
	"internal/profile":      "records that an MCP server fails, or works again",
	"internal/replica":      "records that the machine with the workspace is missing",
	"internal/tool/propose": "records the pull request that a tool opened",
	"internal/workspace":    "records what happens to the sandbox",
}

// writes are the methods of session.Sessions that write.
var writes = []string{"Update", "Create", "Fork", "Bury"}

// lastName is the name at the end of an expression: Sessions of l.Sessions.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func isSessions(e ast.Expr) bool { return strings.EqualFold(lastName(e), "sessions") }

// sessionUses finds code that writes to sessions and is neither the use cases nor one of sessionWriters.
func sessionUses(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if p.dir == useCases || within(p.dir, "internal/session") || within(p.dir, "bench") { // bench measures parts
			continue
		}
		recorder, used := sessionWriters[p.dir] != "", false
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if !isSessions(n.X) || !slices.Contains(writes, n.Sel.Name) {
						break
					}
					used = true
					if !recorder || n.Sel.Name != "Update" {
						found = append(found, finding{t.at(n.Pos()), fmt.Sprintf("%s calls Sessions.%s", p.dir, n.Sel.Name), whyUseCases})
					}
				case *ast.Field, *ast.AssignStmt:
					if name := otherName(n); name != "" {
						found = append(found, finding{t.at(n.Pos()), fmt.Sprintf("%s calls a *session.Sessions %s", p.dir, name), whySessions})
					}
				}
				return true
			})
		}
		if recorder && !used {
			found = append(found, finding{p.dir, "writes to no session: remove it from sessionWriters", whyUseCases})
		}
	}
	return found
}

// otherName is the name of a *session.Sessions that is not called so; "" if n declares none.
func otherName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Field:
		star, ok := n.Type.(*ast.StarExpr)
		if !ok || lastName(star.X) != "Sessions" {
			break
		}
		for _, name := range n.Names {
			if !isSessions(name) {
				return name.Name
			}
		}
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			if len(n.Lhs) == len(n.Rhs) && isSessions(value) && !isSessions(n.Lhs[i]) {
				return lastName(n.Lhs[i])
			}
		}
	}
	return ""
}

func TestOnlyUseCasesChangeConversations(t *testing.T) { report(t, sessionUses(repository(t))) }

func TestSessionUsesCatch(t *testing.T) {
	const file = "internal/cli/talk.go"
	check := func(path, body string) []finding {
		return sessionUses(planted(t, map[string]string{path: "package x\n\n" + body + "\n"}))
	}
	report(t, check(file, "func f() { t.Sessions.Load(); t.settings.Update() }"))
	report(t, check("internal/agent/loop.go", "func f() { l.Sessions.Update() }"))
	caught(t, check(file, "func f() { t.Sessions.Update() }"), file, "internal/cli calls Sessions.Update")
	caught(t, check(file, "func f() { change := sessions.Update; change() }"), file, "Sessions.Update")
	caught(t, check(file, "func f() { s := t.Sessions; s.Update() }"), file, "calls a *session.Sessions s")
	caught(t, check(file, "func f(s *session.Sessions) { s.Update() }"), file, "calls a *session.Sessions s")
	caught(t, check("internal/agent/delegate.go", "func f() { l.Sessions.Create() }"), "internal/agent", "Sessions.Create")
	caught(t, check("internal/agent/loop.go", ""), "internal/agent", "remove it from sessionWriters")
}
