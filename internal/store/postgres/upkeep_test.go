package postgres

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
)

// If a log cannot be compressed, those after it still are. Compression begins when the server starts.
func TestUpkeepBeginsAtOnce(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	var all []session.Batch
	for range 3 {
		b := newSession(db.NewID())
		must(t, db.Append(t.Context(), b))
		must(t, db.Append(t.Context(), noted(b, "more")))
		all = append(all, b)
	}
	bad, _ := db.ids.place(all[0].ID)
	must(t, db.base.View(t.Context(), func(c *pg.Conn) error {
		return c.Script(`CREATE FUNCTION deckhand.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
			CREATE TRIGGER refuse BEFORE DELETE ON deckhand.events FOR EACH ROW WHEN (OLD.n = ` + strconv.FormatInt(bad, 10) + `) EXECUTE FUNCTION deckhand.refuse()`)
	}))
	t.Cleanup(func() {
		must(t, db.base.View(context.Background(), func(c *pg.Conn) error { return c.Script("DROP FUNCTION deckhand.refuse CASCADE") }))
	})
	again, err := Open(t.Context(), db.address, Options{Upkeep: true})
	must(t, err)
	defer again.Close()
	for count(t, db.DB, "SELECT count(*) FROM deckhand.events") != 4 {
		runtime.Gosched()
	}
	if n := count(t, db.DB, "SELECT count(*) FROM deckhand.events WHERE n = $1", bad); n != 2 {
		t.Errorf("%d rows", n)
	}
	if err := db.Tend(t.Context(), noon.Add(time.Hour)); err == nil {
		t.Error("the failure is not returned")
	}
}
