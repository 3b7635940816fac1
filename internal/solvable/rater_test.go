package solvable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"deckhand/internal/gitprovider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a forge and a model.
type world struct {
	mu     sync.Mutex
	body   map[int]string // of issues; missing ones cannot be read
	reads  int
	asked  []string // who asked what
	answer func(ctx context.Context, question string) (string, error)
}

func newWorld(bodies map[int]string) *world {
	return &world{body: bodies, answer: func(context.Context, string) (string, error) {
		return `{"score":0.75,"sentence":"It is clear."}`, nil
	}}
}

func (w *world) ask(ctx context.Context, user, _, question string) (string, error) {
	w.mu.Lock()
	w.asked = append(w.asked, user+": "+question)
	answer := w.answer
	w.mu.Unlock()
	return answer(ctx, question)
}

func (w *world) issues(numbers ...int) []Issue {
	var out []Issue
	for _, n := range numbers {
		out = append(out, Issue{Provider: "github", Repository: "team/app", Number: n, Read: func(context.Context) (gitprovider.Issue, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reads++
			body, ok := w.body[n]
			if !ok {
				return gitprovider.Issue{}, errors.New("gone")
			}
			return gitprovider.Issue{Number: n, Title: "T", Body: body}, nil
		}})
	}
	return out
}

func (w *world) counts() (reads, asks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads, len(w.asked)
}

func (w *world) set(n int, body string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body[n] = body
}

// rater makes one that ends with the test.
func (w *world) rater(t *testing.T) *Rater {
	r := New(w.ask, slog.New(slog.DiscardHandler))
	t.Cleanup(r.Close)
	return r
}

func TestRatesOnceAndRemembers(t *testing.T) {
	w := newWorld(map[int]string{1: "one", 2: "two"})
	synctest.Test(t, func(t *testing.T) {
		r := w.rater(t)
		got := r.Rate(t.Context(), "ada", w.issues(1, 2, 3))
		if got[0] == nil || *got[0] != (Rating{0.75, "It is clear."}) || got[1] == nil || got[2] != nil {
			t.Fatalf("%v", got)
		}
		r.Rate(t.Context(), "ada", w.issues(1, 2, 3))
		if reads, asks := w.counts(); reads != 3 || asks != 2 {
			t.Errorf("%d reads, %d questions", reads, asks)
		}
		// What one user's model says is nothing to another's.
		r.Rate(t.Context(), "bob", w.issues(1))
		if _, asks := w.counts(); asks != 3 || !strings.HasPrefix(w.asked[2], "bob: ") {
			t.Errorf("%q", w.asked)
		}
		time.Sleep(pause)
		w.set(3, "three")
		if got := r.Rate(t.Context(), "ada", w.issues(3)); got[0] == nil {
			t.Error("what failed once is never tried again")
		}
	})
}

// An issue is looked at again after a while, and the model asked if it changed.
func TestChangedIssuesAreRatedAgain(t *testing.T) {
	w := newWorld(map[int]string{1: "one"})
	synctest.Test(t, func(t *testing.T) {
		r := w.rater(t)
		r.Rate(t.Context(), "ada", w.issues(1))
		time.Sleep(fresh)
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0] == nil {
			t.Error("what is known is not told while it is looked at again")
		}
		synctest.Wait()
		if reads, asks := w.counts(); reads != 2 || asks != 1 {
			t.Errorf("an unchanged issue: %d reads, %d questions", reads, asks)
		}
		w.set(1, "another one")
		w.answer = func(context.Context, string) (string, error) { return `{"score":0,"sentence":"No."}`, nil }
		time.Sleep(fresh)
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0].Score != 0.75 {
			t.Errorf("%v", got[0])
		}
		synctest.Wait()
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0].Score != 0 {
			t.Errorf("the old rating stays: %v", got[0])
		}
		// A failure does not take away what is known.
		w.answer = func(context.Context, string) (string, error) { return "", errors.New("overloaded") }
		w.set(1, "a third one")
		time.Sleep(fresh)
		r.Rate(t.Context(), "ada", w.issues(1))
		synctest.Wait()
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0] == nil || got[0].Score != 0 {
			t.Errorf("%v", got[0])
		}
	})
}

// A slow model delays an answer by a bounded time, and its own is found later.
func TestNobodyWaitsLong(t *testing.T) {
	w := newWorld(map[int]string{1: "one"})
	w.answer = func(ctx context.Context, _ string) (string, error) {
		select {
		case <-time.After(10 * time.Second):
			return `{"score":1,"sentence":"Slow but sure."}`, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := w.rater(t)
		begin := time.Now()
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0] != nil || time.Since(begin) != patience {
			t.Errorf("%v after %v", got[0], time.Since(begin))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if r.Rate(gone, "ada", w.issues(1)); time.Since(begin) != patience {
			t.Error("waits though the asker has left")
		}
		time.Sleep(10 * time.Second)
		begin = time.Now()
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0] == nil || got[0].Score != 1 || time.Since(begin) != 0 {
			t.Errorf("%v", got[0])
		}
		if _, asks := w.counts(); asks != 1 {
			t.Errorf("%d questions", asks)
		}
	})
}

func TestBoundedInNumber(t *testing.T) {
	bodies, all := map[int]string{}, []int{}
	for n := range 3 * perCall {
		bodies[n], all = "x", append(all, n)
	}
	w := newWorld(bodies)
	synctest.Test(t, func(t *testing.T) {
		r := w.rater(t)
		for round := 1; round <= 4; round++ {
			r.Rate(t.Context(), "ada", w.issues(all...))
			if _, asks := w.counts(); asks != min(round, 3)*perCall {
				t.Errorf("round %d: %d questions", round, asks)
			}
		}
		for n := range maxKept + 10 {
			r.known[key{user: "filler", number: n}] = &entry{}
			r.room()
		}
		if len(r.known) > maxKept {
			t.Errorf("%d are kept", len(r.known))
		}
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	w := newWorld(map[int]string{1: "one"})
	ended := make(chan error, 1)
	w.answer = func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		r := w.rater(t)
		r.Rate(t.Context(), "ada", w.issues(1))
		r.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if got := r.Rate(t.Context(), "ada", w.issues(1)); got[0] != nil {
			t.Error("something works after the end")
		}
		if _, asks := w.counts(); asks != 1 {
			t.Errorf("%d questions", asks)
		}
	})
}

func TestParse(t *testing.T) {
	for answer, want := range map[string]Rating{
		`{"score":0.5,"sentence":"Perhaps."}`:                               {0.5, "Perhaps."},
		"Sure!\n```json\n{\"score\": 1, \"sentence\": \"Yes.\"}\n```":       {1, "Yes."},
		`{"score":0,"sentence":"Two\nlines\u0007 and\u202e a bell."}`:       {0, "Two lines and a bell."},
		`{"score":0.2,"sentence":"` + strings.Repeat("x", 1000) + `"}`:      {0.2, strings.Repeat("x", maxAnswer) + "…"},
		`{"score":0.2,"sentence":"` + strings.Repeat("é", maxAnswer) + `"}`: {0.2, strings.Repeat("é", maxAnswer)},
	} {
		if got, err := parse(answer); err != nil || got != want {
			t.Errorf("%q: %+v %v", answer, got, err)
		}
	}
	for _, answer := range []string{"", "I cannot say.", `{"sentence":"No score."}`, `{"score":1.5,"sentence":"Too sure."}`, `{"score":-1,"sentence":"x"}`, `{"score":"1","sentence":"x"}`,
		`{"score":1,"sentence":" \n"}`, `}{`, `{"score":1e999,"sentence":"x"}`, `{"score":1,"sentence":"a"} {"score":0,"sentence":"b"}`} {
		if got, err := parse(answer); err == nil {
			t.Errorf("%q: %+v", answer, got)
		}
	}
}

func TestQuestionIsBounded(t *testing.T) {
	is := gitprovider.Issue{Number: 7, Title: strings.Repeat("t", 5000), Body: strings.Repeat("b", 1<<20)}
	for i := range 100 {
		is.Comments = append(is.Comments, fmt.Sprintf("number %d %s", i, strings.Repeat("c", 1<<16)))
	}
	q := question("team/app", is)
	if n := utf8.RuneCountInString(q); n > maxBody+maxComments*(maxComment+20)+maxAnswer+200 {
		t.Errorf("%d characters", n)
	}
	for _, part := range []string{"team/app", "#7", "95 older", "number 99"} {
		if !strings.Contains(q, part) {
			t.Errorf("%q is missing", part)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"score":0.5,"sentence":"x"}`, "```{}```", `{"score":1e400}`, "{\"score\":0,\"sentence\":\"\xff\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		got, err := parse(answer)
		if err != nil {
			return
		}
		if math.IsNaN(got.Score) || got.Score < 0 || got.Score > 1 || got.Sentence == "" || strings.ContainsAny(got.Sentence, "\n\r\x00") ||
			!utf8.ValidString(got.Sentence) || utf8.RuneCountInString(got.Sentence) > maxAnswer {
			t.Errorf("%q: %+v", answer, got)
		}
	})
}
