package sqlite

import (
	"fmt"
	"testing"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/access/accesstest"
	"deckhand/internal/idempotency"
	"deckhand/internal/idempotency/idempotencytest"
	"deckhand/internal/secret"
	"deckhand/internal/secret/keystoretest"
	"deckhand/internal/settings"
	"deckhand/internal/settings/settingstest"
	"deckhand/internal/store"
)

var _ store.Backend = (*DB)(nil)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func TestMeta(t *testing.T) {
	db := openNew(t)
	got, err := db.Meta(t.Context(), "name")
	must(t, err)
	if got != nil {
		t.Errorf("a new file has %q", got)
	}
	won := make(chan string, 8)
	for i := range 8 {
		go func() {
			v, err := db.SetMetaOnce(t.Context(), "name", fmt.Append(nil, "value ", i))
			if err != nil {
				t.Error(err)
			}
			won <- string(v)
		}()
	}
	first := <-won
	for range 7 {
		if v := <-won; v != first {
			t.Errorf("two values are in force: %q and %q", v, first)
		}
	}
	got, err = db.Meta(t.Context(), "name")
	must(t, err)
	if string(got) != first {
		t.Errorf("got %q, want %q", got, first)
	}
}

// reopened closes the file and opens it again.
func reopened(t *testing.T, db *DB) *DB {
	must(t, db.Close())
	return openAt(t, db.path)
}

type settingsStore struct{ *DB }

func (s settingsStore) Reopen(t *testing.T) settings.Store { return settingsStore{reopened(t, s.DB)} }

func TestSettings(t *testing.T) {
	settingstest.Run(t, func(t *testing.T) settings.Store { return settingsStore{openNew(t)} })
}

type answerStore struct{ *DB }

func (s answerStore) Reopen(t *testing.T) idempotency.Store { return answerStore{reopened(t, s.DB)} }

func TestAnswers(t *testing.T) {
	idempotencytest.Run(t, func(t *testing.T) idempotency.Store { return answerStore{openNew(t)} })
}

type dataKeyStore struct{ *DB }

func (s dataKeyStore) Reopen(t *testing.T) secret.KeyStore { return dataKeyStore{reopened(t, s.DB)} }

func TestDataKeys(t *testing.T) {
	keystoretest.Run(t, func(t *testing.T) secret.KeyStore { return dataKeyStore{openNew(t)} })
}

type accessStore struct{ *DB }

func (s accessStore) Reopen(t *testing.T) access.Store { return accessStore{reopened(t, s.DB)} }

func TestAccess(t *testing.T) {
	accesstest.Run(t, func(t *testing.T) access.Store { return accessStore{openNew(t)} })
}
