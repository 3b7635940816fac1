package trigger

import (
	"slices"
	"testing"
	"time"
)

func TestReplacedSecretIsGoodForADay(t *testing.T) {
	now := time.Now()
	s := secrets{Secret: newSecret()}
	first := s.Secret
	s.rotate(now)
	for after, want := range map[time.Duration][]string{0: {s.Secret, first}, Overlap - time.Second: {s.Secret, first}, Overlap: {s.Secret}} {
		if got := s.good(now.Add(after)); !slices.Equal(got, want) || first == s.Secret {
			t.Errorf("after %s %d secrets are good", after, len(got))
		}
	}
}
