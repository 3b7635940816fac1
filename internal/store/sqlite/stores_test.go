package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/idempotency"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

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

func TestSettings(t *testing.T) {
	db := openNew(t)
	if _, err := db.LoadSettings(t.Context(), "maria"); !errors.Is(err, settings.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	for _, test := range []struct {
		version int64
		want    error
	}{
		{2, settings.ErrConflict}, {1, nil}, {1, settings.ErrConflict}, {3, settings.ErrConflict}, {2, nil}, {3, nil}, {2, settings.ErrConflict},
	} {
		rec := settings.Record{User: "maria", Version: test.version, Body: fmt.Append(nil, "body ", test.version), UpdatedAt: noon}
		if err := db.SaveSettings(t.Context(), rec); !errors.Is(err, test.want) {
			t.Fatalf("version %d: got %v, want %v", test.version, err, test.want)
		}
		if test.want == nil {
			got, err := db.LoadSettings(t.Context(), "maria")
			must(t, err)
			if diff := cmp.Diff(rec, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	if _, err := db.LoadSettings(t.Context(), "otto"); !errors.Is(err, settings.ErrNotFound) {
		t.Errorf("another user has settings too: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	db := openNew(t)
	if _, err := db.Answer(t.Context(), "maria", "k"); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	want := idempotency.Answer{User: "maria", Key: "k", Request: "hash", Status: 200, Header: []byte("h"), Body: []byte{0, 1, 2}, CreatedAt: noon}
	must(t, db.SaveAnswer(t.Context(), want))
	later := want
	later.Status, later.Request = 500, "other"
	must(t, db.SaveAnswer(t.Context(), later)) // the first stays
	got, err := db.Answer(t.Context(), "maria", "k")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := db.Answer(t.Context(), "otto", "k"); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("another user's answer: %v", err)
	}
	for i := range 2500 { // more than one batch, of which the last 100 stay
		must(t, db.SaveAnswer(t.Context(), idempotency.Answer{User: "otto", Key: fmt.Sprint(i), CreatedAt: noon.Add(time.Duration(i) * time.Second)}))
		if i == 200 && testing.Short() {
			break
		}
	}
	must(t, db.DropAnswers(t.Context(), noon.Add(2400*time.Second)))
	if _, err := db.Answer(t.Context(), "otto", "2399"); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("an old answer is still there: %v", err)
	}
	if !testing.Short() {
		_, err = db.Answer(t.Context(), "otto", "2400")
		must(t, err)
	}
}

func TestDataKeys(t *testing.T) {
	db := openNew(t)
	id, err := db.MasterID(t.Context())
	must(t, err)
	if id != "" {
		t.Errorf("a new file has the master key %q", id)
	}
	for range 2 {
		id, err = db.InitMaster(t.Context(), "m1")
		must(t, err)
	}
	other, err := db.InitMaster(t.Context(), "m2")
	must(t, err)
	if id != "m1" || other != "m1" {
		t.Errorf("master keys %q and %q are in force, want m1", id, other)
	}
	if _, err := db.DataKey(t.Context(), "maria"); !errors.Is(err, secret.ErrNoDataKey) {
		t.Errorf("got %v, want ErrNoDataKey", err)
	}
	want := secret.DataKey{User: "maria", ID: "0123456789abcdef", MasterID: "m1", Wrapped: []byte("wrapped"), CreatedAt: noon}
	wrong := want
	wrong.MasterID = "m2"
	if _, err := db.AddDataKey(t.Context(), wrong); !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("got %v, want ErrMasterChanged", err)
	}
	second := want
	second.ID = "fedcba9876543210"
	for _, k := range []secret.DataKey{want, second} {
		got, err := db.AddDataKey(t.Context(), k)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	otto := want
	otto.User = "otto"
	_, err = db.AddDataKey(t.Context(), otto)
	must(t, err)

	rewrap := func(k secret.DataKey) (secret.DataKey, error) {
		k.MasterID, k.Wrapped = "m2", append(bytes.Clone(k.Wrapped), " again"...)
		return k, nil
	}
	if err := db.Rewrap(t.Context(), "m2", "m3", rewrap); !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("got %v, want ErrMasterChanged", err)
	}
	broken := errors.New("broken")
	n := 0
	err = db.Rewrap(t.Context(), "m1", "m2", func(k secret.DataKey) (secret.DataKey, error) {
		if n++; n == 2 {
			return k, broken
		}
		return rewrap(k)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want what the function said", err)
	}
	got, err := db.DataKey(t.Context(), "maria")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an undone rewrap changed the key: %s", diff)
	}
	must(t, db.Rewrap(t.Context(), "m1", "m2", rewrap))
	want, _ = rewrap(want)
	got, err = db.DataKey(t.Context(), "maria")
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if id, err = db.MasterID(t.Context()); err != nil || id != "m2" {
		t.Errorf("the master key in force is %q (%v), want m2", id, err)
	}
}
