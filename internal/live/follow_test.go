package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
)

// upTo follows until the event with the number last, and gives all numbers.
func upTo(ctx context.Context, h *Hub, after, last int64) ([]int64, error) {
	var got []int64
	if after >= last {
		return nil, nil
	}
	for f, err := range h.Follow(ctx, theID, after, FollowOptions{}) {
		if err != nil {
			return got, err
		}
		if got = append(got, f.Number); f.Number >= last {
			break
		}
	}
	return got, nil
}

// Readers come, go and come back at any moment while the log grows.
func TestNoGapNoDuplicate(t *testing.T) {
	const events, readers = 1500, 40
	w := newWorld(t)
	last := int64(events + 1)
	for !shown(last) {
		last++
	}
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			start := int64(0)
			if i%2 == 0 {
				start = 1
			}
			at, got := start, []int64(nil)
			for at < last {
				n := random.IntN(200) + 1
				for f, err := range w.hub.Follow(t.Context(), theID, at, FollowOptions{}) {
					if err != nil {
						t.Error(err)
						return
					}
					at, got = f.Number, append(got, f.Number)
					if n--; n == 0 || at >= last {
						break
					}
				}
			}
			expect(t, fmt.Sprint("reader ", i), start, last, got)
		})
	}
	for w.note(1) < last {
	}
	wg.Wait()
	if n := w.feeds(); n != 0 || w.hub.Followers() != 0 {
		t.Errorf("%d feeds stay", n)
	}
}

// A reader that is slower than the tail is long reads the log again.
func TestBehindTheTail(t *testing.T) {
	w := newWorld(t)
	var got []int64
	last := int64(0)
	for f, err := range w.hub.Follow(t.Context(), theID, 0, FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, f.Number); len(got) == 1 {
			// While this reader holds still, the log grows by several tails; another one keeps up.
			last = w.note(5 * tailFrames)
			for !shown(last) {
				last = w.note(1)
			}
			if numbers, err := upTo(t.Context(), w.hub, 1, last); err != nil {
				t.Fatal(err)
			} else {
				expect(t, "fast", 1, last, numbers)
			}
		}
		if f.Number == last {
			break
		}
	}
	expect(t, "slow", 0, last, got)
}

func TestTailIsBounded(t *testing.T) {
	d := &feed{hub: New(nil, nil), followers: 1, changed: make(chan struct{})}
	frame := func(n int64, size int) item {
		return item{number: n, frame: Frame{Number: n, Data: make([]byte, size)}, shown: true}
	}
	n := int64(0)
	check := func(what string, frames, size int) {
		t.Helper()
		if len(d.tail) > frames || d.bytes > size || len(d.tail) == 0 {
			t.Errorf("%s: %d frames, %d bytes", what, len(d.tail), d.bytes)
		}
		if d.tail[0].number != d.floor+1 || d.tail[len(d.tail)-1].number != d.last {
			t.Errorf("%s: tail %d..%d, floor %d, last %d", what, d.tail[0].number, d.tail[len(d.tail)-1].number, d.floor, d.last)
		}
	}
	for range 10 * tailFrames {
		n++
		d.publish([]item{frame(n, 10)}, n)
		check("small", 2*tailFrames, 2*tailBytes)
	}
	for range 100 {
		n++
		d.publish([]item{frame(n, 100_000)}, n)
		check("larger", 2*tailFrames, 2*tailBytes)
	}
	n++
	d.publish([]item{frame(n, 5<<20)}, n)
	check("one that is too large alone", 1, 5<<20)
}

// When all readers have everything, nothing is kept for them, and reading is done once for all.
func TestQuietFeedHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go func() {
				for range w.hub.Follow(ctx, theID, 0, FollowOptions{}) {
				}
			}()
		}
		synctest.Wait()
		before := w.log.reads.Load()
		last := w.note(50)
		synctest.Wait()
		if n := w.log.reads.Load() - before; n > 50 {
			t.Errorf("%d reads for 50 appends and 100 readers", n)
		}
		d := w.hub.feedsOf(theID)[0]
		if d.tail != nil || d.last != last || d.pumping {
			t.Errorf("%d frames, last %d, pumping %v", len(d.tail), d.last, d.pumping)
		}
		cancel()
		synctest.Wait()
		if w.feeds() != 0 {
			t.Error("the feed stays")
		}
	})
}

func TestResume(t *testing.T) {
	w := newWorld(t)
	last := w.note(20)
	for after := int64(-1); after < last; after++ {
		got, err := upTo(t.Context(), w.hub, after, last-1)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, fmt.Sprint("after ", after), max(after, 0), last-1, got)
	}
}

func TestPositionBeyondTheEnd(t *testing.T) {
	w := newWorld(t)
	last := w.note(3)
	for range w.hub.Follow(t.Context(), theID, 0, FollowOptions{}) { // with a feed that knows the end, and without
		if _, err := upTo(t.Context(), w.hub, last+1, last+2); !errors.Is(err, ErrAhead) {
			t.Error(err)
		}
		break
	}
	if _, err := upTo(t.Context(), w.hub, last+1, last+2); !errors.Is(err, ErrAhead) {
		t.Error(err)
	}
}

func TestDeletionEndsStreams(t *testing.T) {
	w := newWorld(t)
	last := w.note(3)
	waiting := make(chan []Frame)
	for range 3 {
		go func() {
			var got []Frame
			for f, err := range w.hub.Follow(t.Context(), theID, last, FollowOptions{}) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, f)
			}
			waiting <- got
		}()
	}
	end := w.add(session.Deleted{})
	isEnd := func(got []Frame) bool {
		return len(got) == 1 && got[0].Event == EventEnd && got[0].Number == end
	}
	for range 3 {
		if got := <-waiting; !isEnd(got) {
			t.Errorf("%+v", got)
		}
	}
	for _, after := range []int64{0, 2, end - 1, end} { // who comes later, from wherever
		var got []Frame
		for f, err := range w.hub.Follow(t.Context(), theID, after, FollowOptions{}) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, f)
		}
		if !isEnd(got) {
			t.Errorf("after %d: %+v", after, got)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begin := time.Now()
		var at []time.Duration
		for f, err := range w.hub.Follow(t.Context(), theID, 1, FollowOptions{Heartbeat: time.Minute}) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(begin))
			switch len(at) {
			case 1, 3:
				if f.Event != EventPing {
					t.Errorf("%+v", f)
				}
				time.Sleep(30 * time.Second)
				w.note(1)
			case 2:
				if f.Number != 2 {
					t.Errorf("%+v", f)
				}
			}
			if len(at) == 4 {
				break
			}
		}
		want := []time.Duration{time.Minute, 90 * time.Second, 150 * time.Second, 180 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("%v, want %v", at, want)
		}
	})
}

// Between replicas a wake-up may be lost. That costs time, never an event.
func TestLostWakeUp(t *testing.T) {
	for _, heartbeat := range []time.Duration{0, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			begin := time.Now()
			go func() {
				time.Sleep(time.Second / 2)
				w.addBy(w.deaf, session.Noted{ID: "note"})
			}()
			for f, err := range w.hub.Follow(t.Context(), theID, 1, FollowOptions{Heartbeat: heartbeat}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.Event == EventPing {
					continue
				}
				if f.Number != 2 || time.Since(begin) > max(heartbeat, idleCheck) {
					t.Errorf("%+v after %v", f, time.Since(begin))
				}
				break
			}
		})
	}
}

// A store that fails ends the streams; who comes back is served again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ended := make(chan error, 3)
		for range cap(ended) {
			go func() {
				_, err := upTo(t.Context(), w.hub, 1, 1000)
				ended <- err
			}()
		}
		synctest.Wait()
		w.log.broken.Store(true)
		w.hub.Appended(theID, 2)
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, errStore) {
				t.Error(err)
			}
		}
		if _, err := upTo(t.Context(), w.hub, 0, 1000); !errors.Is(err, errStore) {
			t.Error(err)
		}
		w.log.broken.Store(false)
		last := w.note(3)
		if got, err := upTo(t.Context(), w.hub, 0, last); err != nil {
			t.Error(err)
		} else {
			expect(t, "back", 0, last, got)
		}
		w.add(session.Noted{ID: "poison"})
		if _, err := upTo(t.Context(), w.hub, 0, 1000); err == nil || errors.Is(err, errStore) {
			t.Error(err)
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		why := errors.New("the key was revoked")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			_, err := upTo(ctx, w.hub, 1, 1000)
			ended <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := upTo(ctx, w.hub, 0, 1000); !errors.Is(err, why) {
			t.Error(err)
		}
	})
}

func TestFramesAreOneLine(t *testing.T) {
	w := newWorld(t)
	w.add(session.Noted{ID: "lines"}, session.Titled{Title: "t"})
	var got []Frame
	for f, err := range w.hub.Follow(t.Context(), theID, 1, FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, f); len(got) == 2 {
			break
		}
	}
	if string(got[0].Data) != `{"n":1}` || got[1].Event != EventStatus || got[1].Number != 3 {
		t.Errorf("%q %+v", got[0].Data, got)
	}
}

// What is appended after a reader has seen the end of the log, and before the
// feed knows where that is, is the narrowest place to lose an event.
func TestAppendBetweenReadingAndFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begin := time.Now()
		then := func() { w.note(1) }
		w.log.after.Store(&then)
		if _, err := upTo(t.Context(), w.hub, 0, 2); err != nil || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A feed that failed is not given to new readers, though old ones have not left yet.
func TestFailedFeedIsReplaced(t *testing.T) {
	w := newWorld(t)
	old := w.hub.join(theID, 0, 0)
	old.feed.fail(errStore)
	if _, err := upTo(t.Context(), w.hub, 0, 1); err != nil {
		t.Error(err)
	}
	if _, err := old.next(t.Context()); !errors.Is(err, errStore) {
		t.Error(err)
	}
	w.hub.leave(old)
}
