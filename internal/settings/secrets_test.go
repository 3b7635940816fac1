package settings

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/internal/secret"
)

// An error stores nothing, and changes made at the same time are all kept.
func TestChange(t *testing.T) {
	s := New(NewMemStore(), keyring(t), secret.NewRedactor())
	no := errors.New("no")
	if err := s.Change(t.Context(), "ada", func(s *Settings) error { s.Email = new(string); return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	if _, err := s.Get(t.Context(), "ada"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := s.Change(t.Context(), "ada", func(s *Settings) error { return s.AddSecret(fmt.Sprintf("S%d", i), "v", "", api.Opt[[]string]{}) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Get(t.Context(), "ada")
	if err != nil || len(got.CustomSecrets) != 20 || !got.EnableDefaultCondenser {
		t.Errorf("%d %v", len(got.CustomSecrets), err)
	}
}

func TestSecretRules(t *testing.T) {
	var s Settings
	if err := errors.Join(s.AddSecret("A", "1", "one", api.Opt[[]string]{}), s.AddSecret("B", "2", "", api.Opt[[]string]{})); err != nil {
		t.Fatal(err)
	}
	if err := s.AddSecret("A", "3", "", api.Opt[[]string]{}); !errors.Is(err, ErrSecretExists) {
		t.Errorf("%v", err)
	}
	if err := s.EditSecret("A", "B", api.Opt[string]{}, api.Opt[[]string]{}); !errors.Is(err, ErrSecretExists) {
		t.Errorf("%v", err)
	}
	if err := s.EditSecret("A", "C", api.Opt[string]{}, api.Opt[[]string]{}); err != nil || s.CustomSecrets["C"].Value.Reveal() != "1" || s.CustomSecrets["C"].Description != "one" {
		t.Errorf("%v %+v", err, s.CustomSecrets)
	}
	if err := s.EditSecret("C", "C", api.Null[string](), api.Opt[[]string]{}); err != nil || s.CustomSecrets["C"].Description != "" {
		t.Errorf("%v %+v", err, s.CustomSecrets)
	}
	if err := errors.Join(s.RemoveSecret("B"), s.RemoveSecret("C")); err != nil || len(s.CustomSecrets) != 0 {
		t.Errorf("%v", err)
	}
	if err := s.RemoveSecret("A"); !errors.Is(err, ErrNoSecret) {
		t.Errorf("%v", err)
	}
	for i := range maxCustomSecrets {
		if err := s.AddSecret(fmt.Sprintf("S%d", i), "v", "", api.Opt[[]string]{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddSecret("ONE_MORE", "v", "", api.Opt[[]string]{}); err == nil {
		t.Error("there is no end to them")
	}
}
