package custom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/terminal"
)

// Changes shows the changed files of a workspace, or the diff of one file.
func (s Source) Changes(ctx context.Context, d *terminal.Display, id, file string) error {
	if file = strings.TrimPrefix(file, "@"); file != "" {
		diff, err := s.Client.Diff(ctx, id, file)
		if err == nil {
			d.Diff(udiff.Unified("a/"+file, "b/"+file, text(diff.Original), text(diff.Modified)))
		}
		return unchanged(d, err)
	}
	all, err := s.Client.Changes(ctx, id)
	switch {
	case err != nil:
		return unchanged(d, err)
	case len(all) == 0:
		d.Notice("no changes")
		return nil
	}
	slices.SortFunc(all, func(a, b api.GitChange) int { return strings.Compare(a.Path, b.Path) })
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s\n", c.Status, c.Path)
	}
	d.Notice(strings.TrimSpace(b.String()))
	return nil
}

// unchanged shows a notice for an error that only means that there is nothing to compare. It returns other errors.
func unchanged(d *terminal.Display, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return cli.Plainly(err)
	}
	switch refused.Code {
	case api.CodeNoWorkspace:
		d.Notice("no changes yet: the agent has not used the workspace")
	case api.CodeNoRepository:
		d.Notice("changes appear once the workspace is a git repository")
	default:
		return cli.Plainly(err)
	}
	return nil
}

// text returns a text that may be missing.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
