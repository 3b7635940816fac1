package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                      string
	Deps, TestImports, XTestImports []string
}

// changed keeps the packages whose tests a change since base can touch: those
// that hold a changed file, and those that depend on them. A changed module file
// touches all.
func changed(ctx context.Context, base string, packages []string) ([]string, error) {
	files, err := changedFiles(ctx, base)
	if err != nil {
		return nil, err
	}
	all, err := load(ctx)
	if err != nil {
		return nil, err
	}
	touched, everything := touchedBy(files, all)
	if everything {
		return packages, nil
	}
	var out []string
	for _, p := range packages {
		if reaches(p, all, touched) {
			out = append(out, p)
		}
	}
	return out, nil
}

// changedFiles are the files that differ from base, with those not yet in git.
func changedFiles(ctx context.Context, base string) ([]string, error) {
	var out []string
	for _, args := range [][]string{{"diff", "--name-only", "--no-renames", base}, {"ls-files", "--others", "--exclude-standard"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		out = append(out, strings.Fields(string(text))...)
	}
	return out, nil
}

func load(ctx context.Context) (map[string]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Deps,TestImports,XTestImports", "./...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
}

// touchedBy maps files to the packages that hold them. What belongs to no
// package, a text or a script, is looked at by the tests of the architecture;
// the page is looked at by those that serve it.
func touchedBy(files []string, all map[string]pkg) (touched map[string]bool, everything bool) {
	touched = map[string]bool{}
	for _, f := range files {
		if f == "go.mod" || f == "go.sum" {
			return nil, true
		}
		touched["deckhand/internal/archtest"] = true
		if strings.HasPrefix(f, "web/") {
			touched["deckhand/cmd/deckhand"] = true
		}
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if p := "deckhand/" + dir; all[p].ImportPath != "" {
				touched[p] = true
				break
			}
		}
	}
	// The runner is inside the program, not among its imports.
	if reaches("deckhand/cmd/runner", all, touched) {
		touched["deckhand/internal/sandbox/runner/embedded"] = true
	}
	return touched, false
}

// reaches tells whether a package or its tests depend on a touched one.
func reaches(name string, all map[string]pkg, touched map[string]bool) bool {
	p := all[name]
	if touched[name] || slices.ContainsFunc(p.Deps, func(d string) bool { return touched[d] }) {
		return true
	}
	for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
		if touched[i] || slices.ContainsFunc(all[i].Deps, func(d string) bool { return touched[d] }) {
			return true
		}
	}
	return false
}
