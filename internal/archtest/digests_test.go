package archtest

import (
	"go/ast"
	"slices"
	"testing"
)

const whyDigest = "each copy of a hash over several texts must be unambiguous, and stored digests must stay the same; use idempotency.Digest"

// digests finds functions that hash several texts and are not idempotency.Digest: named digest, or with a list
// of texts as a parameter.
func digests(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if p.dir == "internal/idempotency" {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if ok && fn.Body != nil && hashes(fn.Body) && (fn.Recv == nil && fn.Name.Name == "digest" || takesTexts(fn.Type)) {
					found = append(found, finding{t.at(fn.Pos()), fn.Name.Name + " hashes several texts", whyDigest})
				}
			}
		}
	}
	return found
}

// hashes reports code that calls the package sha256; handing sha256.New to hmac is no digest.
func hashes(n ast.Node) bool {
	return contains(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := s.X.(*ast.Ident)
		return ok && pkg.Name == "sha256"
	})
}

// takesTexts reports functions of several texts.
func takesTexts(fn *ast.FuncType) bool {
	return slices.ContainsFunc(fn.Params.List, func(f *ast.Field) bool {
		of := f.Type
		switch list := of.(type) {
		case *ast.Ellipsis:
			of = list.Elt
		case *ast.ArrayType:
			of = list.Elt
		default:
			return false
		}
		name, ok := of.(*ast.Ident)
		return ok && name.Name == "string"
	})
}

// contains reports whether a node, or one below it, is wanted.
func contains(n ast.Node, wanted func(ast.Node) bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		found = found || n != nil && wanted(n)
		return !found
	})
	return found
}

func TestDigests(t *testing.T) { report(t, digests(repository(t))) }

func TestDigestsCatch(t *testing.T) {
	check := func(body string) []finding {
		return digests(planted(t, map[string]string{"internal/live/live.go": "package live\n\n" + body + "\n"}))
	}
	report(t, check("func digest(old []string) string { return old[0] }\n\nfunc sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }"))
	caught(t, check("func digest(s string) [32]byte { return sha256.Sum256([]byte(s)) }"), "internal/live/live.go", "digest")
	caught(t, check("func key(parts ...string) []byte {\n\th := sha256.New()\n\tfor _, p := range parts {\n\t\tfmt.Fprintf(h, \"%d:%s\", len(p), p)\n\t}\n\treturn h.Sum(nil)\n}"),
		"internal/live/live.go", "key")
}
