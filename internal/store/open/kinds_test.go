package open_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/config"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
	"deckhand/internal/store/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The schemas when the list of kinds began.
const firstSQLite, firstPostgres = 13, 4

// A server that does not know a kind cannot read conversations with such events, so it must not start on a database that may have
// them: a new kind needs a migration after which older servers refuse to start.
func TestKindsComeWithAMigration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "kinds.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			listed[words[0]] = words[1:]
		}
	}
	needs := schemas(t)
	for _, p := range session.Payloads() {
		numbers, ok := listed[string(p.Kind())]
		delete(listed, string(p.Kind()))
		switch {
		case !ok:
			t.Errorf("%s is new: add a migration to SQLite and one to PostgreSQL that names its own schema as the oldest that can use the database, and a line to testdata/kinds.txt", p.Kind())
		case len(numbers) == 0:
		case len(numbers) != 2:
			t.Errorf("%s: the line has %d numbers", p.Kind(), len(numbers))
		default:
			in, _ := strconv.ParseInt(numbers[0], 10, 64)
			if in <= firstSQLite || in > sqlite.Schema {
				t.Errorf("%s: SQLite has no new schema %d", p.Kind(), in)
			}
			in, _ = strconv.ParseInt(numbers[1], 10, 64)
			if in <= firstPostgres || needs[in] != in {
				t.Errorf("%s: servers before schema %d of PostgreSQL can use the database", p.Kind(), in)
			}
		}
	}
	for kind := range listed {
		t.Errorf("%s is no kind any more, but stored events are permanent", kind)
	}
}

// schemas maps each schema to the oldest one whose servers can use the database.
func schemas(t *testing.T) map[int64]int64 {
	t.Helper()
	db, err := open.Database(t.Context(), config.Database{Dir: t.TempDir(), Address: pgtest.New(t)}, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	needs := map[int64]int64{}
	err = db.(*postgres.DB).Base().View(t.Context(), func(c *pg.Conn) error {
		return c.Query("SELECT version, needs FROM deckhand.schema_version", func(v []any) error {
			needs[pg.Number(v[0])] = pg.Number(v[1])
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return needs
}
