package cli

import (
	"strings"
	"testing"

	"deckhand/internal/conversation"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/settings"
)

// The refusals of the use cases are shown at the terminal, in the same words as elsewhere, and the state is looked at again:
// otherwise the program would wait for a change that never comes.
func TestTalkShowsRefusals(t *testing.T) {
	t.Parallel()
	ctx, log := t.Context(), memlog.New()
	sessions := session.New(log)
	const running, deleted = session.ID("running"), session.ID("deleted")
	for _, id := range []session.ID{running, deleted} {
		if _, err := sessions.Create(ctx, id, session.Created{Owner: "ada"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	service := conversation.New(conversation.Config{Sessions: sessions, Log: log, Index: log, Settings: settings.New(settings.NewMemStore(), nil, secret.NewRedactor())})
	if err := service.Delete(ctx, "ada", deleted); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id   session.ID
		do   func(*talk) error
		want string
	}{
		"a late decision":  {running, func(t *talk) error { return t.give(ctx, conversation.Decision{CallID: "c", Approve: true}) }, "Not possible in the current state: that call is not waiting for approval."},
		"an empty message": {running, func(t *talk) error { return t.say(ctx, " ") }, "A message needs text, an image or a file."},
		"a deleted one":    {deleted, func(t *talk) error { return t.say(ctx, "hello") }, "Conversation not found"},
	} {
		for _, asJSON := range []bool{false, true} {
			var out, errs strings.Builder
			o := &Output{Stdout: &out, Stderr: &errs}
			at := newTalk(TalkOptions{JSON: asJSON}, LocalServer{ID: c.id, Owner: "ada", Sessions: sessions, Conversations: service, Log: log}, o)
			if err := c.do(at); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			shown, other := out.String(), errs.String()
			if asJSON {
				shown, other = other, shown
			}
			if !strings.Contains(shown, c.want) || other != "" || len(at.grew) != 1 {
				t.Errorf("%s: shown %q and %q, looks again %d times", name, shown, other, len(at.grew))
			}
		}
	}
}
