package socketio

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/socketio/wire"
)

// letter is a packet of a size.
func letter(name string, size int) *wire.Packet {
	return &wire.Packet{Type: wire.Event, Name: name, Attachments: [][]byte{make([]byte, size-len(name))}}
}

func TestMailboxIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ size, fit int }{
		"by number":       {10, mailPackets},
		"by bytes":        {mailBytes / 4, 4},
		"but for one":     {mailBytes * 3, 1},
		"just over bytes": {mailBytes/2 + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, put, total := newMailbox(), 0, 3*mailPackets
				go func() {
					for put < total {
						m.put(letter(strconv.Itoa(put), c.size))
						put++
					}
				}()
				for i := range total {
					synctest.Wait()
					if want := min(i+c.fit, total); put != want {
						t.Fatalf("%d were taken and %d put, wanted %d", i, put, want)
					}
					if p, ok := m.take(nil); !ok || p.Name != strconv.Itoa(i) {
						t.Fatalf("number %d is %v, %v", i, p, ok)
					}
				}
			})
		})
	}
}

func TestMailboxCloses(t *testing.T) {
	for name, c := range map[string]struct {
		discard bool
		left    int
	}{
		"with what waits":    {false, mailPackets},
		"without what waits": {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMailbox()
				go func() {
					for range 2 * mailPackets {
						m.put(letter("x", 1)) // returns when the mailbox closes
					}
				}()
				synctest.Wait()
				m.close(c.discard)
				for i := range c.left {
					if _, ok := m.take(nil); !ok {
						t.Fatalf("only %d were left", i)
					}
				}
				if p, ok := m.take(nil); ok {
					t.Errorf("there is more: %v", p)
				}
			})
		})
	}
	t.Run("while a receiver waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMailbox()
			go func() {
				synctest.Wait()
				m.close(false)
			}()
			if p, ok := m.take(nil); ok {
				t.Errorf("came %v", p)
			}
		})
	})
}

// TestWorkOutlivesTheSocket shows how long a handler may go on when its client
// is gone, and that it does not block the others.
func TestWorkOutlivesTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Socket{mail: newMailbox()}
		s.ctx, s.end = context.WithCancelCause(t.Context())
		for _, name := range []string{"quick", "stuck", "never"} {
			s.mail.put(letter(name, 10))
		}
		s.end(ErrLeft)
		s.mail.close(false)
		begin, seen := time.Now(), ""
		s.work(func(ctx context.Context, e Event) {
			seen += e.Name + " "
			if e.Name == "quick" {
				if ctx.Err() != nil {
					t.Error("the context ended at once")
				}
				return
			}
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrLeft) {
				t.Errorf("the context ended because of %v", err)
			}
		})
		if took := time.Since(begin); took != grace {
			t.Errorf("work went on for %v", took)
		}
		if seen != "quick stuck " && seen != "quick stuck never " {
			t.Errorf("handled were %s", seen)
		}
	})
}
