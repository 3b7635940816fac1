package live

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"deckhand/internal/session"
)

// reader collects what Follow yields, for a bubble's tests to look at.
type reader struct {
	frames []Frame
	cancel context.CancelFunc
}

func (w *world) read(ctx context.Context, after int64) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{cancel: cancel}
	go func() {
		for f, err := range w.hub.Follow(ctx, theID, after, FollowOptions{}) {
			if err == nil {
				r.frames = append(r.frames, f)
			}
		}
	}()
	synctest.Wait()
	return r
}

// delta is what a delta frame says.
type delta struct {
	Call   string
	Offset int
	Text   string
}

func parse(t testing.TB, f Frame) delta {
	t.Helper()
	var d delta
	if err := json.Unmarshal(f.Data, &d); err != nil || f.Event != EventDelta || f.Number != 0 {
		t.Fatalf("%+v %s: %v", f, f.Data, err)
	}
	return d
}

// text puts the deltas of a call together, and insists that they fit.
func (r *reader) text(t testing.TB, call string) string {
	t.Helper()
	var b strings.Builder
	for _, f := range r.frames {
		if f.Event != EventDelta {
			continue
		}
		if d := parse(t, f); d.Call == call {
			if d.Offset != b.Len() {
				t.Fatalf("offset %d after %d bytes", d.Offset, b.Len())
			}
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func TestDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ask("m1")
		w.hub.Delta(theID, "m1", "nobody ") // kept without followers
		early := w.read(t.Context(), 0)
		w.hub.Delta(theID, "m1", "hears ")
		synctest.Wait()
		late := w.read(t.Context(), 5) // reconnects in the middle: the fragment so far, then the rest
		w.hub.Delta(theID, "m1", "this")
		synctest.Wait()
		for name, r := range map[string]*reader{"early": early, "late": late} {
			if got := r.text(t, "m1"); got != "nobody hears this" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if n := len(late.frames); n != 2 {
			t.Errorf("%d deltas, want the fragment and the rest", n)
		}

		w.add(session.ModelAnswered{Call: "m1", Text: "nobody hears this"})
		w.hub.Delta(theID, "m1", "too late")
		w.hub.EndDelta(theID, "m1")
		w.hub.Delta(theID, "m1", "much too late")
		synctest.Wait()
		for name, r := range map[string]*reader{"early": early, "late": late, "after": w.read(t.Context(), 6)} {
			if got := r.text(t, "m1"); strings.Contains(got, "too late") {
				t.Errorf("%s got a delta after the end: %q", name, got)
			}
		}

		// The next call begins anew.
		w.ask("m2")
		w.hub.Delta(theID, "m2", "again")
		synctest.Wait()
		if got := early.text(t, "m2"); got != "again" {
			t.Errorf("%q", got)
		}
		// And when the call fails, for which there is no frame, the fragment goes too.
		w.add(session.ModelFailed{Call: "m2", Class: "network"})
		synctest.Wait()
		if len(w.hub.open.byID) != 0 || w.hub.open.bytes != 0 {
			t.Errorf("%d fragments, %d bytes stay", len(w.hub.open.byID), w.hub.open.bytes)
		}
		for _, r := range []*reader{early, late} {
			r.cancel()
		}
	})
}

// The stored answer is the last word, whatever the order in which the hub hears of things.
func TestNoDeltaAfterTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.ask("m1")
	const calls, readers = 60, 8
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			answered := map[string]bool{}
			for f, err := range w.hub.Follow(t.Context(), theID, 0, FollowOptions{}) {
				if err != nil {
					t.Error(err)
					return
				}
				if f.Event == EventDelta {
					if d := parse(t, f); answered[d.Call] {
						t.Errorf("a delta of %s after its answer", d.Call)
					}
				} else if f.Event == EventStatus {
					return
				}
				if k, ok := w.answers(f.Number); ok {
					answered[k] = true
				}
			}
		})
	}
	for i := 1; i <= calls; i++ {
		call := fmt.Sprint("m", i)
		var senders sync.WaitGroup
		for range 3 { // deltas come from elsewhere and do not wait for the append
			senders.Go(func() {
				for range 20 {
					w.hub.Delta(theID, call, "word ")
				}
			})
		}
		w.add(session.ModelAnswered{Call: call})
		w.hub.EndDelta(theID, call)
		senders.Wait()
		w.ask(fmt.Sprint("m", i+1))
	}
	w.add(session.Titled{Title: "the end"})
	wg.Wait()
}

// answers says which call the event with the number answers.
func (w *world) answers(n int64) (string, bool) {
	for e, err := range w.log.Log.Read(context.Background(), theID, n-1) {
		if a, ok := e.Payload.(session.ModelAnswered); ok && err == nil && e.Number == n {
			return a.Call, true
		}
		break
	}
	return "", false
}

// Characters are never cut, however the fragments are.
func TestDeltasAreWholeCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ask("m")
		r := w.read(t.Context(), 5)
		text := strings.Repeat("aé€𝄞<&>\"\\\u2028", 40)
		random := rand.New(rand.NewPCG(1, 2))
		for rest := text; rest != ""; {
			n := min(random.IntN(4)+1, len(rest))
			w.hub.Delta(theID, "m", rest[:n])
			rest = rest[n:]
			if random.IntN(3) > 0 { // a slow reader gets larger pieces
				synctest.Wait()
			}
		}
		synctest.Wait()
		if got := r.text(t, "m"); got != text {
			t.Errorf("%q", got)
		}
		for _, f := range r.frames {
			if d := parse(t, f); strings.ContainsRune(d.Text, utf8.RuneError) {
				t.Errorf("a cut character in %q", d.Text)
			}
		}
		r.cancel()
	})
}

func TestFragmentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &w.hub.open
		megabyte := strings.Repeat("x", fragmentBytes)
		w.hub.Delta(theID, "m", megabyte[1:])
		w.hub.Delta(theID, "m", "12")
		w.hub.Delta(theID, "m", "3") // would fit, but behind a hole
		if len(o.byID[theID].text) != fragmentBytes-1 {
			t.Errorf("%d bytes", len(o.byID[theID].text))
		}
		for i := range 2 * totalBytes / fragmentBytes {
			w.hub.Delta(session.ID(fmt.Sprint("s", i)), "m", megabyte)
		}
		if o.bytes > totalBytes {
			t.Errorf("%d bytes in all", o.bytes)
		}
		for i := range 2 * openCalls {
			w.hub.Delta(session.ID(fmt.Sprint("t", i)), "m", "x")
		}
		if len(o.byID) > openCalls {
			t.Errorf("%d fragments", len(o.byID))
		}
		// What was left behind makes place after a while.
		time.Sleep(staleAfter + time.Second)
		w.hub.Delta("new", "m", "x")
		if len(o.byID) != 1 || o.bytes != 1 {
			t.Errorf("%d fragments, %d bytes", len(o.byID), o.bytes)
		}
		time.Sleep(staleAfter + time.Second)
		f := w.hub.join("new", 0, 0)
		if frame, ok := o.since(f); ok || o.bytes != 0 {
			t.Errorf("a stale fragment is shown: %+v", frame)
		}
		w.hub.leave(f)
	})
}

// Three things keep a late delta away, each where the others cannot see it.
func TestLateDeltas(t *testing.T) {
	late := func(t *testing.T, w *world, after int64) {
		t.Helper()
		r := w.read(t.Context(), after)
		if got := r.text(t, "m"); got != "" {
			t.Errorf("after %d: %q", after, got)
		}
		r.cancel()
	}
	synctest.Test(t, func(t *testing.T) { // the reader itself read the end, the hub does not know of it yet
		w := newWorld(t)
		w.ask("m")
		w.hub.Delta(theID, "m", "old")
		w.addBy(w.deaf, session.ModelAnswered{Call: "m"})
		late(t, w, 5)
	})
	synctest.Test(t, func(t *testing.T) { // without followers the hub remembers that the call is over
		w := newWorld(t)
		w.ask("m")
		w.hub.Delta(theID, "m", "old")
		w.add(session.ModelAnswered{Call: "m"})
		w.hub.EndDelta(theID, "m")
		w.hub.Delta(theID, "m", "older")
		late(t, w, 6)
	})
	synctest.Test(t, func(t *testing.T) { // the hub has forgotten, the feed saw the end
		w := newWorld(t)
		w.ask("m")
		other := w.read(t.Context(), 0)
		w.add(session.ModelAnswered{Call: "m"})
		synctest.Wait()
		for i := range endedCalls {
			w.hub.EndDelta("another", fmt.Sprint(i))
		}
		w.hub.Delta(theID, "m", "old")
		late(t, w, 6)
		other.cancel()
	})
}

// What a person's own command writes is kept for its result, and not shown as an answer.
func TestTypedOutputIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.read(t.Context(), 0)
		call := session.TypedCommand{Number: 7}.Call()
		w.hub.Delta(theID, call, "half")
		synctest.Wait()
		if got := r.text(t, call); got != "" || w.hub.Written(theID, call) != "half" {
			t.Errorf("shown %q, kept %q", got, w.hub.Written(theID, call))
		}
		w.hub.EndDelta(theID, call)
		r.cancel()
	})
}

// What may not be shown yet is kept for the result of a call that is interrupted, until a
// delta brings it.
func TestHeldTextIsKeptAndNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ask("m")
		r := w.read(t.Context(), 0)
		o := &w.hub.open
		check := func(when, shown, written string) {
			t.Helper()
			synctest.Wait()
			if got := r.text(t, "m"); got != shown {
				t.Errorf("%s: %q is shown, wanted %q", when, got, shown)
			}
			if got := w.hub.Written(theID, "m"); got != written {
				t.Errorf("%s: %q was written, wanted %q", when, got, written)
			}
			if o.bytes != len(written) {
				t.Errorf("%s: %d bytes count", when, o.bytes)
			}
		}
		w.hub.Hold(theID, "m", "pass")
		check("at the beginning", "", "pass")
		w.hub.Delta(theID, "m", "pass, ")
		check("it was none", "pass, ", "pass, ")
		w.hub.Hold(theID, "m", "p")
		w.hub.Hold(theID, "m", "pa")
		check("it grows", "pass, ", "pass, pa")
		w.hub.EndDelta(theID, "m")
		w.hub.Hold(theID, "m", "pas")
		check("after the end", "pass, ", "")

		w.hub.Delta(theID, "n", strings.Repeat("x", fragmentBytes-1))
		w.hub.Hold(theID, "n", "12")
		w.hub.Delta(theID, "n", "12")
		w.hub.Hold(theID, "n", "3") // would fit, but behind a hole
		if got := len(w.hub.Written(theID, "n")); got != fragmentBytes-1 || o.bytes != got {
			t.Errorf("%d bytes were written, %d count", got, o.bytes)
		}
		r.cancel()
	})
}
