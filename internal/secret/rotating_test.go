package secret_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/secret"
)

func TestRotating(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	r := secret.NewRotating()
	first := r.Secret
	if other := secret.NewRotating().Secret; !strings.HasPrefix(first, "whsec_") || len(first) != len("whsec_")+44 || other == first {
		t.Errorf("keys are %q and %q", first, other)
	}
	if got := r.Good(now); !slices.Equal(got, []string{first}) {
		t.Errorf("a new one has the keys %q", got)
	}
	r.Rotate(now)
	second := r.Secret
	if got := r.Good(now.Add(secret.Overlap - 1)); second == first || !slices.Equal(got, []string{second, first}) {
		t.Errorf("right after it was replaced it has the keys %q", got)
	}
	if got := r.Good(now.Add(secret.Overlap)); !slices.Equal(got, []string{second}) {
		t.Errorf("a day later it has the keys %q", got)
	}
	r.Rotate(now)
	if got := r.Good(now); slices.Contains(got, first) {
		t.Errorf("one before the last is still good: %q", got)
	}
}
