package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func hold(t *testing.T, g *Gate, plain string) (context.Context, func()) {
	t.Helper()
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	return g.Hold(t.Context(), id)
}

func open(t *testing.T, name string, ctx context.Context) {
	t.Helper()
	if ctx.Err() != nil {
		t.Errorf("%s is closed (%v), want it open", name, context.Cause(ctx))
	}
}

func closed(t *testing.T, name string, ctx context.Context) {
	t.Helper()
	if !errors.Is(context.Cause(ctx), ErrRevoked) {
		t.Errorf("%s: cause is %v, want ErrRevoked", name, context.Cause(ctx))
	}
}

func TestRevokeClosesStreams(t *testing.T) {
	g, _, _ := newTestGate(t)
	bobs, key := create(t, g, "bob", false, 0)
	others, _ := create(t, g, "bob", false, 0)
	other, release := hold(t, g, others)
	defer release()
	held := make([]context.Context, 100)
	for i := range held {
		held[i], release = hold(t, g, bobs)
		defer release()
	}
	_, err := g.Revoke(t.Context(), key.ID, false)
	good(t, err)
	for i, ctx := range held {
		closed(t, fmt.Sprint("stream ", i), ctx)
	}
	open(t, "the other key's stream", other)
	if n := len(g.streams); n != 1 {
		t.Errorf("%d streams are listed, want 1", n)
	}
}

// Streams join while the key is revoked and a backstop refreshes: none that joined before Revoke returned, or joins
// after, is open afterwards.
func TestRevokeWhileStreamsJoin(t *testing.T) {
	for range 20 {
		g, _, _ := newTestGate(t)
		plain, key := create(t, g, "bob", false, 0)
		id, err := g.Authenticate(t.Context(), plain)
		good(t, err)
		var wg sync.WaitGroup
		held := make([]context.Context, 100)
		start := make(chan struct{})
		for i := range held {
			wg.Go(func() {
				<-start
				held[i], _ = g.Hold(t.Context(), id)
			})
		}
		wg.Go(func() {
			<-start
			if err := g.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			<-start
			if _, err := g.Revoke(t.Context(), key.ID, false); err != nil {
				t.Error(err)
			}
		})
		close(start)
		wg.Wait()
		for i, ctx := range held {
			closed(t, fmt.Sprint("stream ", i), ctx)
		}
		late, _ := g.Hold(t.Context(), id)
		closed(t, "a late stream", late)
	}
}

// Many keys come while streams are open and the gate refreshes all the time: no good stream is closed by mistake.
func TestNewKeysAreNotMistaken(t *testing.T) {
	g, s, c := newTestGate(t)
	done := make(chan struct{})
	var background, wg sync.WaitGroup
	background.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := g.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range 50 {
		wg.Go(func() {
			name, plain := fmt.Sprint("user", i), newKey()
			if err := errors.Join(
				s.CreateUser(t.Context(), User{Name: name, CreatedAt: c.now()}),
				s.CreateKey(t.Context(), Key{ID: name, User: name, Hash: hashOf(plain)}),
			); err != nil {
				t.Error(err)
			}
			id, err := g.Authenticate(t.Context(), plain)
			if err != nil {
				t.Error(err)
			}
			ctx, release := g.Hold(t.Context(), id)
			defer release()
			if err := g.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
			open(t, name, ctx)
		})
	}
	wg.Wait()
	close(done)
	background.Wait()
}

func TestChangeElsewhereClosesStreams(t *testing.T) {
	g, s, c := newTestGate(t)
	bobs, bobKey := create(t, g, "bob", false, 0)
	eves, _ := create(t, g, "eve", false, 0)
	als, _ := create(t, g, "al", false, 0)
	bob, release := hold(t, g, bobs)
	defer release()
	eve, release := hold(t, g, eves)
	defer release()
	al, release := hold(t, g, als)
	defer release()

	_, err := s.RevokeKey(t.Context(), bobKey.ID, c.now())
	good(t, err)
	good(t, s.SetUserDisabled(t.Context(), "eve", true))
	open(t, "bob before Refresh", bob)
	good(t, g.Refresh(t.Context()))
	closed(t, "bob", bob)
	closed(t, "eve", eve)
	open(t, "al", al)
}

func TestDisableClosesStreams(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	ctx, release := hold(t, g, plain)
	defer release()
	good(t, g.DisableUser(t.Context(), "bob", false))
	closed(t, "bob", ctx)
	good(t, g.EnableUser(t.Context(), "bob"))
	again, release := hold(t, g, plain)
	defer release()
	open(t, "bob again", again)
}

// If the store fails while the streams are checked, the next Refresh checks them.
func TestRefreshTriesAgain(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	ctx, release := hold(t, g, plain)
	defer release()
	_, err := s.RevokeKey(t.Context(), key.ID, c.now())
	good(t, err)
	s.fail.Store(true)
	refused(t, g.Refresh(t.Context()), errDisk)
	open(t, "the stream", ctx)
	s.fail.Store(false)
	good(t, g.Refresh(t.Context()))
	closed(t, "the stream", ctx)
}

func TestHoldRefuses(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, time.Hour)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)

	stolen := id
	stolen.User = "eve"
	ctx, _ := g.Hold(t.Context(), stolen)
	closed(t, "another user's key", ctx)

	s.fail.Store(true)
	ctx, _ = g.Hold(t.Context(), id)
	refused(t, context.Cause(ctx), errDisk)
	s.fail.Store(false)

	c.advance(time.Hour)
	ctx, _ = g.Hold(t.Context(), id)
	closed(t, "an expired key", ctx)
	_, err = g.Revoke(t.Context(), key.ID, false)
	good(t, err)
	ctx, _ = g.Hold(t.Context(), id)
	closed(t, "a revoked key", ctx)
	if n := len(g.streams); n != 0 {
		t.Errorf("%d streams are listed, want none", n)
	}
}

func TestReleaseEndsQuietly(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, time.Hour)
	ctx, release := hold(t, g, plain)
	release()
	release()
	if cause := context.Cause(ctx); cause != context.Canceled {
		t.Errorf("cause is %v, want context.Canceled", cause)
	}
	if n := len(g.streams); n != 0 {
		t.Errorf("%d streams are listed, want none", n)
	}
}

func TestStreamEndsWhenItsKeyExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewMemStore(), Options{})
		plain, _ := create(t, g, "bob", false, time.Hour)
		ctx, release := hold(t, g, plain)
		defer release()
		began := time.Now()
		<-ctx.Done()
		closed(t, "the stream", ctx)
		if took := time.Since(began); took.Round(time.Second) != time.Hour {
			t.Errorf("it ended after %v, want an hour", took)
		}
	})
}

// The clock jumps, as when a laptop wakes up: the timer does not know, the next Refresh does.
func TestRefreshEndsExpired(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, _ := create(t, g, "bob", false, time.Hour)
	ctx, release := hold(t, g, plain)
	defer release()
	good(t, g.Refresh(t.Context()))
	open(t, "the stream", ctx)
	c.advance(time.Hour)
	good(t, g.Refresh(t.Context()))
	closed(t, "the stream", ctx)
}
