package profile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/profile"
	"deckhand/internal/session"
)

// An agent begins no work for a disabled user, whatever asks for it. If that cannot be looked up, it is tried again later.
func TestNoWorkForDisabledUsers(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	b := profile.New(profile.Config{Disabled: func(_ context.Context, user string) (bool, error) {
		if user == "carol" {
			return false, broken
		}
		return user == "bob", nil
	}})
	defer b.Close()
	_, err := b.Profile(t.Context(), session.State{Owner: "bob"})
	if why := (*agent.ProfileError)(nil); !errors.As(err, &why) || !strings.Contains(why.Reason, "bob is disabled") {
		t.Errorf("disabled: %v", err)
	}
	if _, err := b.Profile(t.Context(), session.State{Owner: "carol"}); !errors.Is(err, broken) {
		t.Errorf("not known: %v", err)
	}
}
