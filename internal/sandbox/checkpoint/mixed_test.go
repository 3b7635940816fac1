package checkpoint

import (
	"fmt"
	"testing"

	"deckhand/internal/sandbox"
)

// A file or git history that changed in a span in which others may have changed files too is not restored without a question.
func TestUndoMixedSpans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(map[string]string{"a": "0", "b": "0", "r/.git/HEAD": "0", "r/.git/refs/heads/main": "0", "r/.git/objects/x": "0"})
	one := r.span(func() { r.write(map[string]string{"a": "1"}) })
	two := r.span(func() { r.write(map[string]string{"b": "1", "r/.git/refs/heads/main": "1"}) })
	two.Mixed = true
	got := r.undo(sandbox.RefuseOwn, one, two)
	if fmt.Sprint(got.Files, got.Repositories) != "[b] [r]" {
		t.Errorf("asked about %v, %v", got.Files, got.Repositories)
	}
	r.has("refused", map[string]string{"a": "1", "b": "1", "r/.git/refs/heads/main": "1"})
	got = r.undo(sandbox.KeepOwn, one, two)
	r.has("kept", map[string]string{"a": "0", "b": "1", "r/.git/refs/heads/main": "1"})
	r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
	r.undo(sandbox.OverwriteOwn, one, two)
	r.has("overwritten", map[string]string{"a": "0", "b": "0", "r/.git/refs/heads/main": "0"})
}
