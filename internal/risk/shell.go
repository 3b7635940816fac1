package risk

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"deckhand/internal/risk/text"
)

// Limits of what is looked into; beyond them a command is Unknown.
const (
	maxCommand = 64 << 10 // bytes
	maxWithin  = 4        // commands given as text to commands
	maxNesting = 100      // brackets and keywords open at once
	maxThrough = 16       // commands that run commands
	// maxCommands is how many commands are rated in all. It bounds the work where
	// commands run commands.
	maxCommands = 1000
)

const tooDeep = "The command is nested too deeply to analyze."

// Shell rates a bash command. The reason is a sentence for the person who is asked.
func Shell(command string) (Rating, string) { return ShellIn("", command) }

// ShellIn rates a bash command in a shell that is in a folder: below the workspace, or the whole path of one outside.
func ShellIn(folder, command string) (Rating, string) {
	left := maxCommands
	j := &judge{left: &left, dir: folder}
	j.script(command)
	if j.reason == "" {
		return Low, "It does nothing."
	}
	return j.rating, j.reason
}

// judge rates one command line.
type judge struct {
	verdict
	// dir is where relative names lead after the cd commands so far, as far as is known.
	dir string
	// away is set after a cd command whose target is not known.
	away bool
	// within counts the commands given as text around this one.
	within int
	// left is how many more commands are looked at.
	left *int
	// loops maps variables that only one loop sets to the words that the loop iterates over.
	loops map[string][]arg
}

// script parses and rates a text.
func (j *judge) script(command string) {
	if strings.TrimSpace(command) == "" {
		return
	}
	if j.within > maxWithin {
		j.add(Unknown, tooDeep)
		return
	}
	file, problem := parseShell(command)
	if problem != nil {
		j.add(problem.rating, problem.reason)
		return
	}
	j.loops = loops(file)
	syntax.Walk(file, j.visit)
}

// inner rates a command that is given to another one as text.
func (j *judge) inner(command string) {
	k := &judge{dir: j.dir, away: j.away, within: j.within + 1, left: j.left}
	k.script(command)
	if k.reason != "" {
		j.add(k.rating, k.reason)
	}
}

// parseShell parses what is fit to be parsed.
func parseShell(command string) (*syntax.File, *verdict) {
	switch {
	case len(command) > maxCommand:
		return nil, &verdict{Unknown, "The command is too long to analyze."}
	case !utf8.ValidString(command):
		return nil, &verdict{Unknown, "The command is not valid text."}
	case Disguised(command):
		return nil, &verdict{High, "The command contains invisible or control characters, so it may not be what it looks like."}
	case text.Nesting(command) > maxNesting:
		return nil, &verdict{Unknown, tooDeep}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil, &verdict{Unknown, "The command is not valid bash, so its effect is unknown."}
	}
	return file, nil
}

// earlier is how an interactive shell is asked to insert earlier commands.
var earlier = regexp.MustCompile(`![A-Za-z0-9!$?:^*#-]`)

// history rates text that an interactive shell replaces before it parses anything.
func (j *judge) history(parts []syntax.WordPart) {
	for i, p := range parts {
		l, ok := p.(*syntax.Lit)
		if ok && (earlier.MatchString(l.Value) || strings.HasSuffix(l.Value, "!") && i+1 < len(parts)) {
			j.add(Unknown, "It repeats parts of earlier commands, which are only known at run time.")
		}
	}
}

// visit rates one node of the tree. The walk comes to every one, so what a rule
// does not look into is still seen.
func (j *judge) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		j.statement(n)
	case *syntax.Redirect:
		j.redirect(n)
	case *syntax.CallExpr:
		j.assigns(n)
	case *syntax.DeclClause:
		j.declare(n)
	case *syntax.FuncDecl:
		j.function(n)
	case *syntax.WordIter:
		j.assigned(n.Name.Value, false, "")
	case *syntax.ParamExp:
		j.parameter(n)
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		j.arithmetic(n)
	case *syntax.BinaryTest:
		j.compare(n)
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			j.arithmetic(n.X)
		}
	case *syntax.Word:
		j.history(n.Parts)
	case *syntax.DblQuoted:
		j.history(n.Parts)
	case *syntax.CoprocClause:
		j.add(Medium, "It starts a background process.")
	case *syntax.TestDecl:
		j.add(Unknown, "It contains a test declaration, which cannot be analyzed.")
	}
	return true
}

// statement rates the simple command of a statement, which must know its input.
func (j *judge) statement(s *syntax.Stmt) {
	if s.Coprocess || s.Disown {
		j.add(Unknown, "It uses syntax of another shell.")
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		if ok && len(call.Assigns) == 0 && len(s.Redirs) > 0 {
			j.add(Low, "It opens files.")
		}
		return
	}
	c := command{judge: j, args: argsOf(call.Args)}
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			c.input = r.Hdoc
			if r.Op == syntax.WordHdoc {
				c.input = r.Word
			}
		}
	}
	c.rate()
}

// redirect rates what is read from or written to.
func (j *judge) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		j.assigned(strings.Trim(r.N.Value, "{}"), false, "")
	}
	to := evaluate(r.Word)
	if networkFile(to.text) {
		j.add(High, "It opens a network connection through a file name.")
		return
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		j.reads(to)
		return
	case syntax.DplIn, syntax.DplOut:
		if to.known && strings.Trim(to.text, "0123456789-") == "" {
			return
		}
	}
	if to.process {
		return // the process is rated by itself
	}
	j.writes(to, "It writes to a file.")
}

func networkFile(name string) bool {
	name = path.Clean(name)
	return strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/")
}

// function rates a definition: a function that is called like a program takes its place.
func (j *judge) function(f *syntax.FuncDecl) {
	name := ""
	if f.Name != nil {
		name = f.Name.Value
	}
	if name == "" || known(name) || name == "command_not_found_handle" {
		j.add(High, "It defines a function with the name of a program.")
		return
	}
	j.add(Medium, "It defines a shell function.")
}

// parameter rates ${…}, some of which does more than to look something up.
func (j *judge) parameter(p *syntax.ParamExp) {
	if p.Excl && p.Names == 0 {
		j.add(Unknown, "It uses a variable whose name is in another variable.")
	}
	if p.Index != nil {
		j.arithmetic(p.Index)
	}
	if p.Slice != nil {
		for _, n := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if n != nil {
				j.arithmetic(n)
			}
		}
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		j.add(Unknown, "It expands a variable in a way that may run commands.")
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			j.assigned(p.Param.Value, false, "")
		}
	}
}

// arithmetic rates calculations: the shell evaluates the text of a variable in
// them, and that text can hold commands.
func (j *judge) arithmetic(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		w, ok := n.(*syntax.Word)
		if !ok {
			return true
		}
		got := evaluate(w)
		if got.known && (got.text == "@" || got.text == "*") { // all of an array
			return true
		}
		if !got.known || strings.Trim(got.text, "0123456789") != "" {
			j.add(Medium, "It does arithmetic with a variable, whose value the shell evaluates.")
		}
		return true
	})
}

// compare rates [[ a -eq b ]], which calculates too.
func (j *judge) compare(t *syntax.BinaryTest) {
	switch t.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		j.arithmetic(t.X)
		j.arithmetic(t.Y)
	}
}
