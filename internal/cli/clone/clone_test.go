package clone

import (
	"strings"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/conversation"
)

// A repository that cannot be used is shown as it was typed, but not the password of a URL.
func TestRefused(t *testing.T) {
	t.Parallel()
	for repo, want := range map[string]string{
		"/none":                           "--repo: the folder /none does not exist",
		"./none":                          "--repo: the folder ./none does not exist",
		"../none/x":                       "--repo: the folder ../none/x does not exist",
		"none":                            "--repo none must be an https:// URL",
		"a b":                             "--repo a b must be an https:// URL",
		"http://ada:hunter2@example.org/": "--repo example.org/ must be an https:// URL",
	} {
		dir := t.TempDir()
		_, _, err := Repository{Repo: repo}.Prepare(t.Context(), dir, &cli.Output{}, &conversation.Local{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", repo, err, want)
		}
	}
}
