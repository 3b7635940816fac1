package notify_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/session"
)

const anyURL = "http://receiver.example/hook"

// within says whether a wait is what it should be, give or take the spread.
func within(got, want time.Duration) bool {
	return got >= want*79/100 && got <= want*121/100
}

func status(code int, header ...string) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func TestRetriesOverDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newRig(t), newReceiver(status(http.StatusBadGateway))
		w, secret := r.add("maria", anyURL, "created")
		r.run(piped(t, v))
		r.create("maria", "talk")
		want := []time.Duration{5 * time.Second, 25 * time.Second, 125 * time.Second, 625 * time.Second, 3125 * time.Second, 15625 * time.Second,
			12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour, 12 * time.Hour}
		first := <-v.got
		first.verify(t, secret)
		last := first.at
		for i, wait := range want {
			again := <-v.got
			again.verify(t, secret) // the time that is signed is that of the attempt
			if again.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") || string(again.body) != string(first.body) {
				t.Errorf("try %d is another message", i+2)
			}
			if got := again.at.Sub(last); !within(got, wait) {
				t.Errorf("try %d came after %s, want about %s", i+2, got, wait)
			}
			last = again.at
		}
		synctest.Wait()
		if d := r.deliveries("maria", w.ID)[0]; d.State != notify.GivenUp || d.Attempts != 12 || d.Status != 502 || d.Error != "the receiver responded with 502 Bad Gateway" {
			t.Errorf("%+v", d)
		}
		// One delivery alone does not disable a webhook: the receiver may dislike just that one.
		if got := r.get("maria", w.ID); !got.Enabled || got.Health.Failures != 12 {
			t.Errorf("%+v", got)
		}
		if s := r.last.Stats(); s != (notify.Stats{Failed: 12, GivenUp: 1}) {
			t.Errorf("%+v", s)
		}
		time.Sleep(100 * 24 * time.Hour)
		if len(v.got) > 0 {
			t.Error("it was tried again")
		}
		if left := r.deliveries("maria", w.ID); len(left) != 0 {
			t.Errorf("after 100 days there is still %+v", left)
		}
	})
}

func TestFailingForDaysDisables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newRig(t), newReceiver(status(http.StatusInternalServerError))
		w, _ := r.add("maria", anyURL, "created")
		r.run(piped(t, v))
		began := time.Now()
		for i := 0; r.get("maria", w.ID).Enabled; i++ {
			if time.Since(began) > 80*time.Hour {
				t.Fatalf("%+v", r.get("maria", w.ID))
			}
			r.create("maria", session.ID(fmt.Sprint("talk", i)))
			time.Sleep(2 * time.Hour)
		}
		got := r.get("maria", w.ID)
		if after := time.Since(began); after < 72*time.Hour || !strings.Contains(got.Health.Disabled, "no delivery succeeded since") || got.Waiting == 0 {
			t.Errorf("after %s: %+v", after, got)
		}
		// Nothing is queued or sent any more, until it is enabled.
		tried := v.n
		waiting := got.Waiting
		r.create("maria", "later")
		time.Sleep(48 * time.Hour)
		if got := r.get("maria", w.ID); v.n != tried || got.Waiting != waiting {
			t.Errorf("%d attempts since, %+v", v.n-tried, got)
		}
		v.answer = status(http.StatusOK)
		yes := true
		if _, _, err := r.hooks.Change(t.Context(), "maria", w.ID, notify.Change{Enabled: &yes}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.get("maria", w.ID); got.Waiting != 0 || got.Health != (notify.Health{}) || v.n != tried+waiting {
			t.Errorf("%+v", got)
		}
	})
}

func TestGoneDisables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newRig(t), newReceiver(status(http.StatusGone))
		w, _ := r.add("maria", anyURL)
		r.run(piped(t, v))
		r.create("maria", "talk")
		r.create("maria", "more")
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		got := r.get("maria", w.ID)
		if got.Enabled || got.Health.Disabled != "the receiver responded with 410 Gone" || v.n != 1 {
			t.Errorf("%d attempts, %+v", v.n, got)
		}
		if s := r.last.Stats(); s.Disabled != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newRig(t), newReceiver(nil)
		v.answer = func(n int, w http.ResponseWriter) {
			if n == 1 {
				status(http.StatusTooManyRequests, "Retry-After", "3600")(n, w)
			}
		}
		r.add("maria", anyURL, "created")
		r.run(piped(t, v))
		r.create("maria", "talk")
		first := <-v.got
		synctest.Wait()
		r.create("maria", "more") // the receiver wants to be left alone, whatever there is to say
		second := <-v.got
		if got := second.at.Sub(first.at); got < time.Hour || got > time.Hour+time.Second {
			t.Errorf("it was left alone for %s", got)
		}
		third := <-v.got
		if got := third.at.Sub(second.at); got > time.Second {
			t.Errorf("the other one came %s later", got)
		}
	})
}

// A message that the receiver does not like is no reason to hold back the others.
func TestOneBadMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		v := newReceiver(func(n int, w http.ResponseWriter) {
			if n == 1 || n == 3 {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		r.add("maria", anyURL, "created")
		r.run(piped(t, v))
		r.create("maria", "bad")
		<-v.got
		synctest.Wait()
		begin := time.Now()
		r.create("maria", "good")
		time.Sleep(10 * time.Second)
		var order []string
		for range 2 {
			q := <-v.got
			order = append(order, q.decode(t).Data["conversation_id"].(string))
			if q.at.Sub(begin) > 7*time.Second {
				t.Errorf("it was held back for %s", q.at.Sub(begin))
			}
		}
		if got := strings.Join(order, " "); !strings.Contains(got, "good") || !strings.Contains(got, "bad") {
			t.Errorf("%s", got)
		}
	})
}

// An attempt ends after ten seconds, and the next waits its time.
func TestSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		v := newReceiver(func(n int, _ http.ResponseWriter) {
			if n == 1 {
				time.Sleep(time.Hour)
			}
		})
		w, _ := r.add("maria", anyURL, "created")
		r.run(piped(t, v))
		r.create("maria", "talk")
		first := <-v.got
		time.Sleep(11 * time.Second)
		if d := r.deliveries("maria", w.ID)[0]; d.State != notify.Waiting || d.Error != "the receiver did not respond within 10s" || d.Took != 10*time.Second {
			t.Errorf("%+v", d)
		}
		second := <-v.got
		if got := second.at.Sub(first.at); !within(got-10*time.Second, 5*time.Second) {
			t.Errorf("tried again after %s", got)
		}
		time.Sleep(2 * time.Hour)
	})
}

// While the store cannot record, nothing is sent a second time.
func TestStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, v := newRig(t), newReceiver(nil)
		w, _ := r.add("maria", anyURL, "created")
		r.outbox.broken.Store(5)
		r.run(piped(t, v))
		r.create("maria", "talk")
		time.Sleep(time.Minute)
		if d := r.deliveries("maria", w.ID)[0]; d.State != notify.Delivered || v.n != 1 {
			t.Errorf("sent %d times, %+v", v.n, d)
		}
		if !strings.Contains(r.logs.String(), "cannot record") {
			t.Error("the log does not say so")
		}
	})
}
