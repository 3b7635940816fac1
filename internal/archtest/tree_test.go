package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// tree is the repository as its rules see it: Go packages by folder, and every
// other text beside them.
type tree struct {
	fsys   fs.FS
	module string
	fset   *token.FileSet
	pkgs   []*pkg   // of the product's module, sorted by dir
	paths  []string // of every file that could be committed, Go or not
}

// pkg is one folder with Go files. Its external tests (package x_test) count to it.
type pkg struct {
	dir   string // slash-separated, "." for the root
	name  string
	files []*goFile
}

// goFile is one parsed file.
type goFile struct {
	path  string
	test  bool // a _test.go file, or part of a package that exists for tests
	lines int
	ast   *ast.File
}

// finding is one breach: where it is, what is there, and why that is not wanted.
type finding struct{ where, what, why string }

func (f finding) String() string {
	return fmt.Sprintf("%s: %s\n\twhy: %s", f.where, f.what, f.why)
}

// notCommitted reports folders that hold what was made or fetched, not written.
// It follows .gitignore.
func notCommitted(dir string) bool {
	return slices.Contains([]string{"bin", "data"}, dir) ||
		slices.Contains([]string{".git", "node_modules", "dist"}, path.Base(dir))
}

// load reads the tree. Folders with a go.mod of their own are other modules:
// their texts are listed, their packages are not.
func load(fsys fs.FS) (*tree, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("reading the module's name: %w", err)
	}
	t := &tree{fsys: fsys, fset: token.NewFileSet()}
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	if t.module == "" {
		return nil, errors.New("go.mod names no module")
	}
	var foreign []string // folders that are other modules
	byDir := map[string]*pkg{}
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody tidied up while we were walking
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if notCommitted(p) {
				return fs.SkipDir
			}
			if _, err := fs.Stat(fsys, path.Join(p, "go.mod")); err == nil && p != "." {
				foreign = append(foreign, p)
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		t.paths = append(t.paths, p)
		if path.Ext(p) != ".go" || notGo(p, foreign) {
			return nil
		}
		return t.add(byDir, p)
	})
	if err != nil {
		return nil, err
	}
	for _, p := range byDir {
		t.pkgs = append(t.pkgs, p)
	}
	slices.SortFunc(t.pkgs, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return t, nil
}

// notGo reports files that the go command would not build for us either.
func notGo(p string, foreign []string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "testdata" || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return true
		}
	}
	return slices.ContainsFunc(foreign, func(dir string) bool { return within(p, dir) })
}

// add parses one Go file into its package.
func (t *tree) add(byDir map[string]*pkg, p string) error {
	src, err := fs.ReadFile(t.fsys, p)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	dir := path.Dir(p)
	if byDir[dir] == nil {
		byDir[dir] = &pkg{dir: dir}
	}
	b := byDir[dir]
	if name := f.Name.Name; b.name == "" || !strings.HasSuffix(name, "_test") {
		b.name = strings.TrimSuffix(name, "_test")
	}
	b.files = append(b.files, &goFile{
		path:  p,
		test:  strings.HasSuffix(p, "_test.go") || forTests(dir),
		lines: bytes.Count(src, []byte("\n")),
		ast:   f,
	})
	return nil
}

// forTests reports packages that only tests import: logtest, llmtest, …
func forTests(dir string) bool { return strings.HasSuffix(path.Base(dir), "test") }

// within reports whether p is dir or lies below it.
func within(p, dir string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// imports lists the import paths of a file with their positions.
func (t *tree) imports(f *goFile) map[string]string {
	found := map[string]string{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[p] = t.at(spec.Pos())
		}
	}
	return found
}

// ours turns an import path into a folder of this module.
func (t *tree) ours(importPath string) (dir string, ok bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

// standard reports import paths of the standard library: no dot in the first element.
func (t *tree) standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	_, own := t.ours(importPath)
	return !own && !strings.Contains(first, ".")
}

// at is a position as file:line.
func (t *tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// root is the folder of the repository, found from this test's own folder.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// parsed is the real tree, read once for all tests. Nobody changes it.
var parsed = sync.OnceValues(func() (*tree, error) { return load(os.DirFS(filepath.Join("..", ".."))) })

// repository is the real tree. It insists that there was something to see.
func repository(tb testing.TB) *tree {
	tb.Helper()
	t, err := parsed()
	if err != nil {
		tb.Fatal(err)
	}
	self := func(p *pkg) bool { return p.dir == "internal/archtest" }
	if !slices.ContainsFunc(t.pkgs, self) {
		tb.Fatal("the walk over the repository did not even find this package: every rule would pass by seeing nothing")
	}
	return t
}

// report fails the test once per finding.
func report(tb testing.TB, found []finding) {
	tb.Helper()
	for _, f := range found {
		tb.Error(f)
	}
}
