package checkout

import (
	"context"
	"fmt"
	"strings"

	"deckhand/internal/sandbox"
)

// maxModules is the maximum number of submodules.
const maxModules = 100

// extras fetches submodules and large files. Failures are reported as notes.
func (w *work) extras(ctx context.Context, dir string) ([]string, error) {
	notes, err := w.modules(ctx, dir)
	if err != nil {
		return nil, err
	}
	note, err := w.largeFiles(ctx, dir)
	if err != nil {
		return nil, err
	}
	if note != "" {
		notes = append(notes, note)
	}
	return notes, nil
}

// modules fetches the submodules one by one.
func (w *work) modules(ctx context.Context, dir string) ([]string, error) {
	r, err := w.git(ctx, dir, "config", "-z", "--file", ".gitmodules", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil || r.Exit != 0 {
		return nil, err
	}
	var notes []string
	n := 0
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(r.Stdout), "\x00"), "\x00") {
		_, path, _ := strings.Cut(entry, "\n")
		if n++; n > maxModules {
			return append(notes, fmt.Sprintf("It has more than %d submodules; the rest was not fetched.", maxModules)), nil
		}
		w.tell(sandbox.Progress{Step: sandbox.Cloning, Message: "Fetching the submodule " + printable(path)})
		r, err := w.git(ctx, dir, "--literal-pathspecs", "submodule", "--quiet", "update", "--init", "--recursive", "--checkout", "--", path)
		if err != nil {
			return nil, err
		}
		if r.Exit != 0 {
			notes = append(notes, w.mask.String(fmt.Sprintf("The submodule %s could not be fetched (%s).", printable(path), last(cause(string(r.Stderr))))))
		}
	}
	return notes, nil
}

// cause returns the part of git's output with the reason; the lines after it only say
// that something failed.
func cause(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "fatal: ") {
			return line
		}
	}
	return text
}

// largeFiles fetches Git LFS files, if the repository uses LFS.
func (w *work) largeFiles(ctx context.Context, dir string) (string, error) {
	r, err := w.git(ctx, dir, "grep", "--cached", "--quiet", "--fixed-strings", "-e", "filter=lfs", "--", ".gitattributes", ":(glob)**/.gitattributes")
	if err != nil || r.Exit != 0 {
		return "", err
	}
	r, err = w.git(ctx, dir, "lfs", "version")
	if err != nil {
		return "", err
	}
	if r.Exit != 0 {
		return "The repository uses Git LFS, but git-lfs is not installed in the sandbox: large files are missing, and only their pointers were checked out.", nil
	}
	w.tell(sandbox.Progress{Step: sandbox.Cloning, Message: "Fetching large files"})
	r, err = w.git(ctx, dir, "lfs", "pull")
	if err == nil && r.Exit != 0 {
		return w.mask.String("Its large files could not be fetched from Git LFS (" + last(string(r.Stderr)) + ")."), nil
	}
	return "", err
}
