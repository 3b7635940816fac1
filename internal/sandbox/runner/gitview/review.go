package gitview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
)

// reviewHandlers are the operations of a review.
func (v *View) reviewHandlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{
		"git/review":  handle(v.Review),
		"git/compare": handle(v.Compare),
		"git/revert":  handle(func(ctx context.Context, p sandbox.GitRevertParams) (any, error) { return nil, v.Revert(ctx, p) }),
		"git/stage":   handle(func(ctx context.Context, p sandbox.GitStageParams) (any, error) { return nil, v.Stage(ctx, p) }),
		"git/commit":  handle(v.Commit),
		"git/mark":    handle(func(ctx context.Context, p sandbox.GitMarkParams) (any, error) { return nil, v.Mark(ctx, p) }),
	}
}

func handle[P, R any](do func(context.Context, P) (R, error)) rpc.Handler {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		var p P
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		return do(ctx, p)
	}
}

// Review lists the changes of a range in all repositories.
func (v *View) Review(ctx context.Context, in sandbox.GitRange) (sandbox.GitReview, error) {
	out := sandbox.GitReview{Files: []sandbox.GitFile{}}
	root, tree, err := v.open()
	if err != nil {
		return out, err
	}
	defer root.Close()
	repos, err := v.repos(tree)
	if err != nil {
		return out, err
	}
	size := 0
	for _, r := range repos {
		about, changed, err := v.review(ctx, tree, r, in)
		if errors.Is(err, rpc.ErrNoRepo) {
			continue // not a repository
		}
		if err != nil {
			return out, err
		}
		out.Repos = append(out.Repos, about)
		for _, f := range changed {
			if size += len(f.Path) + len(f.From); size > maxPaths || len(out.Files) == maxChanges {
				return out, tooMany()
			}
			out.Files = append(out.Files, f)
		}
	}
	if len(out.Repos) == 0 {
		return out, fmt.Errorf("%w: neither the workspace nor a folder in it is one", rpc.ErrNoRepo)
	}
	slices.SortFunc(out.Files, func(a, b sandbox.GitFile) int { return bytes.Compare(a.Path, b.Path) })
	return out, nil
}

// review lists the changes in one repository.
func (v *View) review(ctx context.Context, tree files.Tree, r repo, in sandbox.GitRange) (sandbox.GitRepo, []sandbox.GitFile, error) {
	about := sandbox.GitRepo{Name: []byte(strings.TrimSuffix(r.prefix, "/"))}
	s, drop, err := v.scratch(ctx, tree, r, true)
	if err != nil {
		return about, nil, err
	}
	defer drop()
	states := map[string]entry{}
	var untracked []string
	var st status
	err = v.run(ctx, s, "", func(out io.Reader) (err error) {
		st, err = parseStatus(out, func(e entry) error {
			if len(states) == maxChanges {
				return tooMany()
			}
			if e.untracked && !strings.HasSuffix(e.path, "/") && !v.nested(tree, r, e.path) {
				untracked = append(untracked, e.path)
			}
			if was, twice := states[e.path]; twice {
				e.staged, e.unstaged, e.conflict = e.staged || was.staged, e.unstaged || was.unstaged, e.conflict || was.conflict
			}
			states[e.path] = e
			return nil
		})
		return err
	}, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty")
	if err != nil {
		return about, nil, err
	}
	about.Branch, about.Head = st.branch, st.head
	if about.Default, about.Branches, err = v.branches(ctx, r); err != nil {
		return about, nil, err
	}
	base, err := v.resolve(ctx, tree, r, st.branch, in)
	if err != nil {
		return about, nil, err
	}
	if len(untracked) > 0 && in.Kind != sandbox.RangeStaged { // so that git detects renames
		if _, err := v.text(ctx, s, list(untracked), 1<<20, "add", "-N", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil && code(err) == 0 {
			return about, nil, err
		}
	}
	found := map[string]*delta{}
	args := []string{"diff", "--raw", "--numstat", "-z", "-M", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"}
	switch in.Kind {
	case sandbox.RangeStaged:
		args = append(args, "--cached", base)
	case sandbox.RangeUnstaged:
	default:
		args = append(args, base)
	}
	err = v.run(ctx, s, "", func(out io.Reader) error { return parseDeltas(out, found) }, append(args, "--")...)
	if err != nil {
		return about, nil, err
	}
	var all []sandbox.GitFile
	for name, d := range found {
		if v.nested(tree, r, name) {
			continue
		}
		e := states[name]
		f := sandbox.GitFile{Status: d.status, Path: []byte(r.prefix + name), Added: d.added, Removed: d.removed, Binary: d.binary, Staged: e.staged, Unstaged: e.unstaged}
		now := d.id
		if in.Kind != sandbox.RangeStaged {
			now = signature(tree, r.prefix+name)
		}
		if d.from != "" {
			f.From = []byte(r.prefix + d.from)
			was := states[d.from]
			f.Staged, f.Unstaged = f.Staged || was.staged, f.Unstaged || was.unstaged
		}
		if e.conflict {
			f.Status = "U"
		}
		f.ETag = etag(d.old, now)
		all = append(all, f)
	}
	return about, all, nil
}

// maxBranches is the maximum number of branches that are listed.
const maxBranches = 200

// branches lists the newest branches of a repository and of origin, and origin's default one.
func (v *View) branches(ctx context.Context, r repo) (standard string, names []string, err error) {
	names = []string{}
	out, err := v.text(ctx, r, "", 1<<20, "for-each-ref", "--sort=-committerdate", "--count="+strconv.Itoa(maxBranches),
		"--format=%(refname)%00%(symref)", "refs/heads/", origin)
	if err != nil {
		return "", names, err
	}
	for line := range strings.Lines(string(out)) {
		ref, target, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		if ref == origin+"HEAD" {
			standard = strings.TrimPrefix(target, origin)
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), origin)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range []string{"main", "master"} {
		if standard == "" && slices.Contains(names, name) {
			standard = name
		}
	}
	return standard, names, nil
}

// signature returns a value that changes whenever a file of the workspace does.
func signature(tree files.Tree, name string) string {
	f, err := tree.Stat([]byte(name))
	if err != nil || f.IsDir() {
		return "-"
	}
	return fmt.Sprintf("%v %d %d %s", f.Mode, f.Size, f.Time.UnixNano(), f.Link)
}

// etag identifies two versions of a file: a git object, and a signature or another object.
func etag(old, now string) string {
	if strings.Trim(old, "0") == "" {
		old = ""
	}
	if strings.Trim(now, "0") == "" {
		now = "-"
	}
	return sandbox.Sum([]byte(old + "\n" + now))
}

// at finds the repository of a file, and its path there.
func (v *View) at(tree files.Tree, name string) (repo, string, error) {
	first, rest, ok := strings.Cut(name, "/")
	if ok && isRepo(tree, first+"/") {
		return v.inside(first), rest, nil
	}
	if !isRepo(tree, "") {
		return repo{}, "", rpc.ErrNoRepo
	}
	return repo{dir: v.config.Workspace}, name, nil
}

// Compare returns a file before and after the changes of a range.
func (v *View) Compare(ctx context.Context, p sandbox.GitCompareParams) (sandbox.GitComparison, error) {
	var out sandbox.GitComparison
	root, tree, err := v.open()
	if err != nil {
		return out, err
	}
	defer root.Close()
	before, now, tag, err := v.compare(ctx, tree, p)
	if err != nil {
		return out, fmt.Errorf("%q: %w", p.Path, err)
	}
	out.ETag = tag
	out.Original, out.Modified = version(before), version(now)
	return out, nil
}

func version(b []byte) *sandbox.GitVersion {
	if b == nil {
		return nil
	}
	out := &sandbox.GitVersion{Data: b}
	if s, err := decode(b); err == nil {
		out.Text, out.Data = s, nil
	}
	return out
}

func (v *View) compare(ctx context.Context, tree files.Tree, p sandbox.GitCompareParams) (before, now []byte, tag string, err error) {
	name, err := tree.Place(p.Path)
	if err != nil {
		return nil, nil, "", err
	}
	r, rel, err := v.at(tree, name)
	if err != nil {
		return nil, nil, "", err
	}
	was := rel
	if len(p.From) > 0 {
		if was, err = v.sameRepo(tree, r, p.From); err != nil {
			return nil, nil, "", err
		}
	}
	old, err := v.sources(ctx, tree, r, p.GitRange, was)
	if err != nil {
		return nil, nil, "", err
	}
	from, err := v.read(ctx, r, old[was])
	if err != nil {
		return nil, nil, "", err
	}
	if p.Kind == sandbox.RangeStaged {
		staged, err := v.indexed(ctx, r, rel)
		if err != nil {
			return nil, nil, "", err
		}
		to, err := v.read(ctx, r, staged[rel])
		return from.content, to.content, etag(old[was].id, staged[rel].id), err
	}
	sign := signature(tree, name)
	now, err = v.now(ctx, tree, name, from)
	if err == nil && from.none() && now == nil {
		err = errNever
	}
	return from.content, now, etag(old[was].id, sign), err
}

// sameRepo returns a path relative to the repository r.
func (v *View) sameRepo(tree files.Tree, r repo, p []byte) (string, error) {
	name, err := tree.Place(p)
	if err != nil {
		return "", err
	}
	other, rel, err := v.at(tree, name)
	if err == nil && other.dir != r.dir {
		err = fmt.Errorf("%w: both paths must be in one repository", rpc.ErrInvalid)
	}
	return rel, err
}

// sources returns the objects that a range compares paths with.
func (v *View) sources(ctx context.Context, tree files.Tree, r repo, in sandbox.GitRange, rels ...string) (map[string]object, error) {
	if in.Kind == sandbox.RangeUnstaged {
		return v.indexed(ctx, r, rels...)
	}
	branch, err := v.branch(ctx, r)
	if err != nil {
		return nil, err
	}
	base, err := v.resolve(ctx, tree, r, branch, in)
	if err != nil {
		return nil, err
	}
	return v.stored(ctx, r, base, rels...)
}

// object is a file as git stores it.
type object struct{ mode, id string }

// stored finds files in a tree.
func (v *View) stored(ctx context.Context, r repo, base string, rels ...string) (map[string]object, error) {
	return v.objects(ctx, r, rels, func(about string) (object, bool) {
		parts := strings.Fields(about) // mode, kind, object
		if len(parts) != 3 || parts[1] == "tree" {
			return object{}, false
		}
		return object{parts[0], parts[2]}, true
	}, "ls-tree", "-z", "--full-tree", base, "--")
}

// indexed finds files in the index.
func (v *View) indexed(ctx context.Context, r repo, rels ...string) (map[string]object, error) {
	return v.objects(ctx, r, rels, func(about string) (object, bool) {
		parts := strings.Fields(about) // mode, object, stage
		if len(parts) != 3 || parts[2] != "0" && parts[2] != "2" {
			return object{}, false
		}
		return object{parts[0], parts[1]}, true
	}, "ls-files", "-z", "-s", "--")
}

func (v *View) objects(ctx context.Context, r repo, rels []string, parse func(string) (object, bool), args ...string) (map[string]object, error) {
	found := map[string]object{}
	for len(rels) > 0 {
		n, size := 0, 0
		for n < len(rels) && (n == 0 || size+len(rels[n]) < maxArgs) {
			size += len(rels[n]) + 1
			n++
		}
		err := v.run(ctx, r, "", func(out io.Reader) error {
			return fields(out, func(f string) error {
				about, name, _ := strings.Cut(f, "\t")
				if o, ok := parse(about); ok {
					found[name] = o
				}
				return nil
			})
		}, append(slices.Clone(args), rels[:n]...)...)
		if err != nil {
			return nil, err
		}
		rels = rels[n:]
	}
	return found, nil
}

// read reads a file that git stores.
func (v *View) read(ctx context.Context, r repo, o object) (blob, error) {
	switch o.mode {
	case "":
		return blob{}, nil
	case "160000":
		return blob{module(o.id), true}, nil
	}
	b, err := v.text(ctx, r, "", maxDiff, "cat-file", "blob", o.id)
	return blob{content: append([]byte{}, b...)}, err
}

// folders returns the folders of a path, innermost first.
func folders(name string) (out []string) {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		out = append(out, d)
	}
	return out
}
