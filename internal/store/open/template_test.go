package open

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"deckhand/internal/config"
	"deckhand/internal/store"
)

// New databases with a folder of templates are copies of an empty one, have the same schema as one that ran all migrations.
// A template that cannot be read changes nothing.
func TestTemplate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	look := func(path, query string) (rows []string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		found, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var row string
			if err := found.Scan(&row); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
		return rows
	}
	schema := func(path string) (out []string) {
		t.Helper()
		for _, query := range []string{"SELECT coalesce(sql, name) FROM sqlite_master ORDER BY 1", "SELECT name || value FROM counters ORDER BY 1",
			"PRAGMA auto_vacuum", "PRAGMA journal_mode", "PRAGMA integrity_check"} {
			out = append(out, look(path, query)...)
		}
		return out
	}
	open := func(name, templates string) (path string) {
		t.Helper()
		path = filepath.Join(dir, name)
		db, err := Database(t.Context(), config.Database{Dir: dir, Path: path}, store.Options{Temporary: true, Templates: templates})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	templates := filepath.Join(dir, "templates")
	want := schema(open("without", ""))
	first := open("first", templates)
	if diff := cmp.Diff(want, schema(first)); diff != "" {
		t.Errorf("the first differs from one without a template:\n%s", diff)
	}
	made, err := os.ReadDir(templates)
	if err != nil || len(made) != 1 {
		t.Fatalf("the folder of templates has %v, %v", made, err)
	}
	template := filepath.Join(templates, made[0].Name())
	look(template, "INSERT INTO meta (name, value) VALUES ('mark', x'01') RETURNING name")
	second := open("second", templates)
	if got := look(second, "SELECT name FROM meta WHERE name = 'mark'"); len(got) != 1 {
		t.Error("the second is no copy of the template")
	}
	if err := os.Remove(template); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(template, 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, schema(open("third", templates))); diff != "" {
		t.Errorf("without a usable template:\n%s", diff)
	}
}
