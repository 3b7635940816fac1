package config_test

import (
	"testing"
	"time"

	"deckhand/internal/config"
)

func TestAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, " 1d ": 24 * time.Hour, "36h": 36 * time.Hour, "1h": time.Hour, "0": 0, "0d": 0} {
		var got config.Age
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-1h", "1.5d", "90", "1w", "30m", "20s", "1h30m", "1d12h", "99999999d"} {
		var got config.Age
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted as %v", text, got)
		}
	}
	for age, want := range map[time.Duration]string{48 * time.Hour: "2d", 36 * time.Hour: "36h", 0: "0"} {
		if got := config.Age(age).String(); got != want {
			t.Errorf("%v is shown as %q, want %q", age, got, want)
		}
	}
}
