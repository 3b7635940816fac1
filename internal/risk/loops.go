package risk

import "mvdan.cc/sh/v3/syntax"

// variableOf returns the variable f for the words $f and "$f", "" for other words.
func variableOf(parts []syntax.WordPart) string {
	if len(parts) != 1 {
		return ""
	}
	switch p := parts[0].(type) {
	case *syntax.DblQuoted:
		return variableOf(p.Parts)
	case *syntax.ParamExp:
		if p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil {
			return p.Param.Value
		}
	}
	return ""
}

// loops returns the words that each loop iterates over, by loop variable. It includes only variables that nothing else sets:
// the body of "for f in *.go" is then rated as if $f were *.go.
func loops(file *syntax.File) map[string][]arg {
	found, set := map[string][]arg{}, map[string]int{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.WordIter:
			set[n.Name.Value]++
			for _, a := range argsOf(n.Items) {
				a.variable = ""
				found[n.Name.Value] = append(found[n.Name.Value], a)
			}
		case *syntax.Assign:
			if n.Name != nil {
				set[n.Name.Value] += 2
			}
		case *syntax.CallExpr:
			for _, a := range argsOf(n.Args) { // read f, printf -v f
				set[a.text] += 2
			}
		}
		return true
	})
	for name := range found {
		if set[name] != 1 {
			delete(found, name)
		}
	}
	return found
}
