package idle_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/idle"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

const day = 24 * time.Hour

func TestOldConversationsAreDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		sessions := session.New(log)
		service := conversation.New(conversation.Config{Sessions: sessions, Log: log, Index: log})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- idle.Delete(ctx, log, config.Age(90*day), service.Expire, slog.New(slog.DiscardHandler))
		}()
		create := func(id session.ID) {
			if _, err := sessions.Create(t.Context(), id, session.Created{Owner: "maria", Trigger: "gui"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		change := func(id session.ID, rule func(session.State) ([]session.Payload, error)) {
			if _, err := sessions.Update(t.Context(), id, rule); err != nil {
				t.Fatal(err)
			}
		}
		left := func(want ...session.ID) {
			t.Helper()
			synctest.Wait()
			rows, err := log.Rows(t.Context(), session.Query{Owner: "maria", Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			var got []session.ID
			for _, r := range rows {
				got = append(got, r.ID)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("after %v: %q are left, want %q", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), got, want)
			}
		}
		halt := func(s session.State) ([]session.Payload, error) { return s.Stop("a test") }
		for _, id := range []session.ID{"old", "used", "working"} {
			create(id)
		}
		change("old", halt)
		change("used", halt)
		time.Sleep(60 * day)
		change("used", func(s session.State) ([]session.Payload, error) { return s.Rename("Used") })
		time.Sleep(29 * day)
		left("old", "used", "working")
		time.Sleep(2 * day)
		left("used", "working") // the working one wants a loop, however long that takes
		time.Sleep(60 * day)
		left("working")
		change("working", halt)
		time.Sleep(91 * day)
		left()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
