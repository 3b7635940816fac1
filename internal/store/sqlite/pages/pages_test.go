package pages

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/store/sqlite"
)

// A relative path is one of the working directory, also in a folder: deckhand backup DIR --data-dir data.
func TestCopyOfARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("data", "a?b.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	schema, err := Copy(t.Context(), path, &out)
	if err != nil || schema == 0 || !strings.HasPrefix(out.String(), "SQLite format 3\x00") {
		t.Errorf("schema %d, %d bytes, %v", schema, out.Len(), err)
	}
}
