package notify_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"deckhand/internal/notify"
	"deckhand/internal/outbound"
	"deckhand/internal/session"
)

func TestDeliveryIsThinAndSigned(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	w, secret := r.add("maria", v.serve(t))
	stop := r.run(anywhere())
	r.create("maria", "talk")
	got := <-v.got
	got.verify(t, secret)
	if got.header.Get("User-Agent") != "deckhand" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", got.header)
	}
	m := got.decode(t)
	if m.Type != "conversation.created" || m.Data["conversation_id"] != "talk" || m.Data["event"] != 1.0 || m.Data["status"] != "STARTING" || m.Data["agent_state"] != "loading" || m.Timestamp.IsZero() {
		t.Errorf("%s", got.body)
	}
	if s := string(got.body); strings.Contains(s, "said") || strings.Contains(s, "secret") || len(m.Data) != 4 {
		t.Errorf("it says more than it should: %s", s)
	}
	d := <-r.outbox.settled
	if d.State != notify.Delivered || d.Status != 200 || d.ID != got.header.Get("Webhook-Id") || d.Attempts != 1 {
		t.Errorf("%+v", d)
	}
	r.change("talk", func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	for _, want := range []string{"conversation.state_changed", "conversation.finished"} {
		got := <-v.got
		got.verify(t, secret)
		if m := got.decode(t); m.Type != want || m.Data["agent_state"] != "stopped" {
			t.Errorf("%s", got.body)
		}
		<-r.outbox.settled
	}
	stop()
	if found := r.deliveries("maria", w.ID); len(found) != 3 || found[0].Type != "conversation.finished" || r.last.Stats() != (notify.Stats{Delivered: 3}) {
		t.Errorf("%+v %+v", found, r.last.Stats())
	}
	for _, hidden := range []string{"as-secret-as-a-key", secret, strings.TrimPrefix(secret, "whsec_")} {
		if strings.Contains(r.logs.String(), hidden) {
			t.Errorf("the log shows %s:\n%s", hidden, &r.logs)
		}
	}
}

// The address and the secret are nowhere in the file.
func TestStoredSealed(t *testing.T) {
	r := newRig(t)
	_, secret := r.add("maria", "https://chat.example.org/as-secret-as-a-key")
	if err := r.db.Close(); err != nil { // which empties the write-ahead log into the file
		t.Fatal(err)
	}
	file, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"as-secret-as-a-key", strings.TrimPrefix(secret, "whsec_")} {
		if bytes.Contains(file, []byte(hidden)) {
			t.Errorf("the file holds %s", hidden)
		}
	}
}

func TestRotatedSecretsOverlap(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	w, first := r.add("maria", v.serve(t), "created")
	_, s, err := r.hooks.Change(t.Context(), "maria", w.ID, notify.Change{RotateSecret: true})
	if err != nil || s.IsZero() || s.Reveal() == first || !strings.HasPrefix(s.Reveal(), "whsec_") {
		t.Fatal(s.Reveal(), err)
	}
	r.run(anywhere())
	r.create("maria", "talk")
	got := <-v.got
	got.verify(t, first)
	got.verify(t, s.Reveal())
	<-r.outbox.settled
}

// One conversation's news arrives in the order in which it happened.
func TestOrder(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	r.add("maria", v.serve(t), "state_changed")
	r.create("maria", "talk")
	for range 10 {
		r.change("talk", func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
		r.change("talk", session.State.Start)
	}
	r.run(anywhere())
	last := 0.0
	for range 20 {
		n := (<-v.got).decode(t).Data["event"].(float64)
		if n <= last {
			t.Errorf("event %v after %v", n, last)
		}
		last = n
	}
	for range 20 {
		<-r.outbox.settled
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	r, elsewhere := newRig(t), newReceiver(nil)
	address := elsewhere.serve(t)
	v := newReceiver(func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", address)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	r.add("maria", v.serve(t))
	stop := r.run(anywhere())
	r.create("maria", "talk")
	d := <-r.outbox.settled
	if d.State != notify.Waiting || d.Status != 307 || !strings.Contains(d.Error, "redirects are not followed") {
		t.Errorf("%+v", d)
	}
	stop()
	if len(elsewhere.got) > 0 {
		t.Error("the redirect was followed")
	}
}

// A server that others can reach does not dial what only it can reach.
func TestPrivateAddressIsRefused(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	r.add("maria", v.serve(t))
	stop := r.run(outbound.NewClient(outbound.Policy{}, 0))
	r.create("maria", "talk")
	d := <-r.outbox.settled
	if d.State != notify.Waiting || d.Status != 0 || !strings.Contains(d.Error, "refused to connect to 127.0.0.1") || strings.Contains(d.Error, "as-secret") {
		t.Errorf("%+v", d)
	}
	stop()
	if len(v.got) > 0 {
		t.Error("it was dialled")
	}
}

// Receivers that never answer occupy a part of the places, and others are served.
func TestBlackHolesHoldUpNobody(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	swallowed := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := hole.Accept()
			if err != nil {
				close(swallowed)
				return
			}
			swallowed <- c
		}
	}()
	for range notify.MaxWebhooks {
		r.add("maria", "http://"+hole.Addr().String(), "created")
	}
	r.add("otto", v.serve(t), "created")
	stop := r.run(anywhere())
	r.create("maria", "hole")
	first := <-swallowed // and never answered
	for i := range 20 {
		r.create("otto", session.ID("talk"+string(rune('a'+i))))
	}
	for range 20 {
		<-v.got
		<-r.outbox.settled
	}
	stop()
	first.Close()
	hole.Close()
	n := 1
	for c := range swallowed {
		n++
		c.Close()
	}
	if n > 4 {
		t.Errorf("%d attempts were made at once for one user", n)
	}
	if s := r.last.Stats(); s.Failed != 0 {
		t.Errorf("attempts that were broken off count as failures: %+v", s)
	}
}

// A receiver cannot make us read without end.
func TestAnswerIsBounded(t *testing.T) {
	wrote := make(chan int64, 1)
	r, v := newRig(t), newReceiver(func(_ int, w http.ResponseWriter) {
		n, _ := io.Copy(w, endless{})
		wrote <- n
	})
	r.add("maria", v.serve(t))
	r.run(anywhere())
	r.create("maria", "talk")
	if d := <-r.outbox.settled; d.State != notify.Delivered {
		t.Errorf("%+v", d)
	}
	<-wrote // it ended, since we hung up
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A server that stops while a receiver thinks asks again after its next start, with the same id.
func TestInterruptedAttemptIsRepeated(t *testing.T) {
	release := make(chan struct{})
	r, v := newRig(t), newReceiver(func(n int, w http.ResponseWriter) {
		if n == 1 {
			<-release
		}
	})
	w, _ := r.add("maria", v.serve(t))
	stop := r.run(anywhere())
	r.create("maria", "talk")
	first := <-v.got
	stop()
	close(release)
	if d := r.deliveries("maria", w.ID)[0]; d.State != notify.Waiting || d.Attempts != 0 {
		t.Errorf("%+v", d)
	}
	r.run(anywhere())
	second := <-v.got
	if a, b := first.header.Get("Webhook-Id"), second.header.Get("Webhook-Id"); a != b || a == "" || !bytes.Equal(first.body, second.body) {
		t.Errorf("%q and %q", a, b)
	}
	<-r.outbox.settled
}

// A new address is a fresh start, and a delivery can be made again by hand.
func TestMendedWebhookIsServedAtOnce(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	w, _ := r.add("maria", "http://127.0.0.1:1/nobody-listens", "created")
	r.run(anywhere())
	r.create("maria", "talk")
	if d := <-r.outbox.settled; d.State != notify.Waiting || !strings.Contains(d.Error, "cannot be reached") {
		t.Errorf("%+v", d)
	}
	if got := r.get("maria", w.ID); got.Health.Failures != 1 || got.Waiting != 1 {
		t.Errorf("%+v", got)
	}
	address := v.serve(t)
	if _, _, err := r.hooks.Change(t.Context(), "maria", w.ID, notify.Change{URL: &address}); err != nil {
		t.Fatal(err)
	}
	first := <-v.got
	if m := first.decode(t); m.Data["conversation_id"] != "talk" {
		t.Errorf("%+v", m)
	}
	d := <-r.outbox.settled
	if d.State != notify.Delivered || d.Attempts != 2 {
		t.Errorf("%+v", d)
	}
	if got := r.get("maria", w.ID); got.Health != (notify.Health{}) || got.Waiting != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := r.hooks.Retry(t.Context(), "maria", w.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	if again := <-v.got; !bytes.Equal(again.body, first.body) || again.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") {
		t.Errorf("%s %v", again.body, again.header)
	}
	<-r.outbox.settled
}

func TestTestDelivery(t *testing.T) {
	r, v := newRig(t), newReceiver(nil)
	w, secret := r.add("maria", v.serve(t), "finished")
	r.run(anywhere())
	queued, err := r.hooks.Test(t.Context(), "maria", w.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := <-v.got
	got.verify(t, secret)
	if m := got.decode(t); m.Type != "webhook.test" || m.Data["webhook_id"] != w.ID || got.header.Get("Webhook-Id") != queued.ID {
		t.Errorf("%s", got.body)
	}
	<-r.outbox.settled
}
