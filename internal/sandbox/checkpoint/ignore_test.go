package checkpoint

import (
	"os"
	"testing"

	"deckhand/internal/sandbox"
)

// A new line in .gitignore does not hide changes of a folder that was stored or that git tracks.
func TestUndoWhatBecomesIgnored(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"", "/src/\nnode_modules/\n"} {
		r := gitRig(t)
		r.write(map[string]string{"src/a.txt": "0", "src/deep/b": "0", ".gitignore": first, "kind": "0", "node_modules/m": "0"})
		r.git("add", "-f", "src/a.txt", "src/deep/b")
		r.git("commit", "-q", "-m", "src")
		turn := r.span(func() {
			must(t, os.Remove(r.at("kind")))
			r.write(map[string]string{".gitignore": first + "/src/\nkind\n*\n", "src/a.txt": "EVIL", "src/new": "1", "src/deep/b": "EVIL", "kind/f": "1", "other/f": "1"})
			if first != "" {
				r.write(map[string]string{"node_modules/m": "1"})
			}
		})
		got := r.undo(sandbox.RefuseOwn, turn)
		if len(got.Files) > 0 || len(got.Kept) > 0 {
			t.Errorf("%+v", got)
		}
		want := map[string]string{"src/a.txt": "0", "src/new": "-", "src/deep/b": "0", ".gitignore": first, "kind": "0", "node_modules/m": "0"}
		if first != "" {
			want["node_modules/m"] = "1" // ignored from the start
		}
		r.has("undone", want)
		r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
		r.has("redone", map[string]string{"src/a.txt": "EVIL", "src/new": "1", "src/deep/b": "EVIL", "kind/f": "1"})
	}
}
