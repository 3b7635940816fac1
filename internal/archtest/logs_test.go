package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	whyRequestLog = "a line that is logged for a request has its ID and its conversation: log with the Context functions, and the context adds both"
	whySessionLog = "a line about a conversation without its ID cannot be found by its owner's question: add \"session\", or list the message as one about the whole server"
)

// logged are the functions of a logger that know no context.
var logged = []string{"Debug", "Info", "Warn", "Error"}

// aboutSessions are the packages that work on conversations.
var aboutSessions = []string{"internal/agent", "internal/workspace", "internal/checkout", "internal/conversation/attempts"}

// aboutAll are the messages of aboutSessions that are not about one conversation.
var aboutAll = []string{
	"cannot look for unfinished conversations", "cannot look for idle conversations", "the lease was not released; it ends by itself", "the lease was not renewed",
	"cannot look for unused sandboxes", "a restore of files cannot be recorded yet", "cannot look for unfinished starts",
}

// logLines finds lines that do not say which request or conversation they are about.
func logLines(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				fn, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains(logged, fn.Sel.Name) || !strings.EqualFold(lastName(fn.X), "logger") {
					return true
				}
				switch {
				case within(p.dir, httpAPI):
					found = append(found, finding{t.at(n.Pos()), fn.Sel.Name + " without a context", whyRequestLog})
				case slices.Contains(aboutSessions, p.dir) && !says(call.Args[1:], "session") && !about(call.Args[0]):
					found = append(found, finding{t.at(n.Pos()), fn.Sel.Name + " without a session", whySessionLog})
				}
				return true
			})
		}
	}
	return found
}

// says reports whether one of the arguments is this text.
func says(args []ast.Expr, text string) bool {
	return slices.ContainsFunc(args, func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		return ok && l.Value == `"`+text+`"`
	})
}

// about reports whether a message is about the whole server. One that is passed on is its caller's.
func about(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return !ok || slices.Contains(aboutAll, strings.Trim(l.Value, `"`))
}

func TestLogLines(t *testing.T) { report(t, logLines(repository(t))) }

func TestLogLinesCatch(t *testing.T) {
	check := func(path, line string) []finding {
		return logLines(planted(t, map[string]string{path: "package x\n\nfunc f() { " + line + " }\n"}))
	}
	const route, loop = httpAPI + "/files/files.go", "internal/agent/x.go"
	report(t, check(route, `d.Logger.WarnContext(ctx, "x")`))
	report(t, check(loop, `l.Logger.Warn("x", "session", id)`))
	caught(t, check(route, `d.Logger.Warn("x")`), route, "Warn without a context")
	caught(t, check(loop, `l.Logger.Error("x", "error", err)`), loop, "Error without a session")
}
