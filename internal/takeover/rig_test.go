package takeover_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/store/sqlite"
	"deckhand/internal/takeover"
	"deckhand/internal/v0"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The conversations in testdata.
const (
	newer = session.ID("5f0c0d11e2a34b5c8d7e6f5a4b3c2d1e")
	older = session.ID("0530aa11e2a34b5c8d7e6f5a4b3c2d1e")
)

// berlin is where the server of testdata stood: two hours before UTC in summer.
var berlin = time.FixedZone("", 2*60*60)

// house is a database to import into.
type house struct {
	t        *testing.T
	db       *sqlite.DB
	settings *settings.Service
	masker   *secret.Masker
}

func build(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "deckhand.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	keys, err := secret.OpenKeyring(t.Context(), dir, "", db)
	if err != nil {
		t.Fatal(err)
	}
	red := secret.NewRedactor()
	return &house{t: t, db: db, settings: settings.New(db, keys, red), masker: secret.NewMasker()}
}

// take imports a folder with changes to the usual options.
func (h *house) take(dir string, change ...func(*takeover.Import)) takeover.Report {
	h.t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		h.t.Fatal(err)
	}
	defer root.Close()
	m := takeover.Import{Root: root, User: "ada", Store: h.db, Settings: h.settings, Masker: h.masker, Zone: berlin}
	for _, c := range change {
		c(&m)
	}
	r, err := m.Run(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func dry(m *takeover.Import) { m.DryRun = true }

func (h *house) events(id session.ID) []session.Event {
	h.t.Helper()
	var out []session.Event
	for e, err := range h.db.Read(h.t.Context(), id, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// fold loads a session the way the server does, with every rule.
func (h *house) fold(id session.ID) session.State {
	h.t.Helper()
	st, err := session.New(h.db).Load(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return st
}

// shape is an event as clients know it.
type shape struct {
	ID          int64
	Timestamp   string
	Source      string
	Cause       *int64
	Action      string
	Observation string
	Args        map[string]any
	Extras      map[string]any
	Content     string
}

func (s shape) kind() string { return s.Action + s.Observation }

func parse(t *testing.T, raw []byte) shape {
	t.Helper()
	var s shape
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return s
}

// shown are the events that clients get, without those that are ours.
func (h *house) shown(id session.ID) []shape {
	h.t.Helper()
	var out []shape
	for _, e := range h.events(id) {
		if e.Payload.Kind() != session.KindImported {
			continue
		}
		f, err := v0.Encode(id, e)
		if err != nil {
			h.t.Fatal(err)
		}
		if f.Kind == v0.Event {
			out = append(out, parse(h.t, f.JSON))
		}
	}
	return out
}

func find(t *testing.T, r takeover.Report, from string) takeover.Conversation {
	t.Helper()
	for _, c := range r.Conversations {
		if c.From == from {
			return c
		}
	}
	t.Fatalf("%s is not in the report: %+v", from, r.Conversations)
	return takeover.Conversation{}
}

// write makes files in a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
