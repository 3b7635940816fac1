package replica

import (
	"log/slog"
	"testing"
	"time"

	"deckhand/internal/cluster/nats"
	"deckhand/internal/cluster/natstest"
)

// Messages that someone else on the NATS server repeats are ignored, also old ones. Invalid ones and a server's own are ignored as well.
func TestRepeatedMessages(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	address, err := nats.ParseAddress(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := nats.NewSeal([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	member := func(name string) *Replica {
		conn, err := nats.Connect(t.Context(), address, name, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return &Replica{Member: name, conn: conn, seal: seal, subject: func(kind string) string { return "deckhand.test." + kind }}
	}
	a, b, neighbour := member("a"), member("b"), member("n").conn
	subject := a.subject("queue")
	overheard, got := make(chan []byte, 10), make(chan string, 10)
	stop, err := neighbour.Subscribe(subject, func(data []byte) { overheard <- data })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	stop, err = b.receive("queue", func(content []byte) { got <- string(content) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	next := func() string {
		t.Helper()
		select {
		case text := <-got:
			return text
		case <-time.After(time.Minute):
			t.Fatal("no message arrived")
			return ""
		}
	}
	a.send("queue", 1)
	first := <-overheard
	a.send("queue", 2)
	second := <-overheard
	for want := range 2 {
		if text := next(); text != []string{"1", "2"}[want] {
			t.Errorf("got %s", text)
		}
	}
	b.send("queue", "from b")
	for _, data := range [][]byte{<-overheard, first, second, second, seal.Seal(subject, []byte("a")), seal.Seal(subject, []byte("a x\n9")), seal.Seal(subject, nil), []byte("a 9\n9")} {
		neighbour.Publish(subject, data)
	}
	if err := neighbour.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.send("queue", 3)
	if text := next(); text != "3" {
		t.Errorf("a repeated or invalid message was accepted: %s", text)
	}
}
