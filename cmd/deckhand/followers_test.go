package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/soak"
)

// followers is how many read one conversation.
var followers = soak.Times(100, 1000)

const (
	messages  = 40
	lastWords = "these are the last words"
)

// follower reads a stream with as little as possible: a connection and a small buffer.
type follower struct {
	ids []int64
	err error
}

// read takes ids until the last words, and says when the stream has begun.
func (f *follower) read(addr, key, id string, began chan<- struct{}) {
	begin := func() {
		if began != nil {
			began <- struct{}{}
		}
		began = nil
	}
	defer begin()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		f.err = err
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Minute)) // only so that a server that wedges fails the test
	fmt.Fprintf(conn, "GET /api/conversations/%s/events/stream HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\n\r\n", id, key)
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil)
	if err != nil {
		f.err = err
		return
	}
	// The body is not closed: closing reads to its end, which does not come.
	if res.StatusCode != http.StatusOK {
		f.err = fmt.Errorf("status %d", res.StatusCode)
		return
	}
	lines := bufio.NewReaderSize(res.Body, 1024)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			f.err = err
			return
		}
		begin()
		if n, ok := strings.CutPrefix(line, "id: "); ok {
			number, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil {
				f.err = err
				return
			}
			f.ids = append(f.ids, number)
		}
		if strings.Contains(line, `"source":"user"`) && strings.Contains(line, lastWords) {
			return
		}
	}
}

// Many readers of one conversation get every event once and in order,
// while it is being talked to.
func TestManyFollowers(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	addr := strings.TrimPrefix(b.base, "http://")
	all := make([]follower, followers)
	began, done := make(chan struct{}, followers), make(chan struct{}, followers)
	start := func(from, to int) {
		for i := from; i < to; i++ {
			go func() {
				all[i].read(addr, b.key, id, began)
				done <- struct{}{}
			}()
		}
		for range to - from {
			<-began
		}
	}
	begin := time.Now()
	start(0, followers*9/10)
	connected := time.Since(begin)
	for n := range messages {
		if err := b.client.Say(t.Context(), id, fmt.Sprintf("message %d", n), ""); err != nil {
			t.Fatal(err)
		}
		if n == messages/2 { // the rest joins in the middle
			start(followers*9/10, followers)
		}
	}
	if c, err := b.client.Conversation(t.Context(), id); err != nil || c.NumConnections != followers {
		t.Errorf("%d connections are counted, %v", c.NumConnections, err)
	}
	if err := b.client.Say(t.Context(), id, lastWords, ""); err != nil {
		t.Fatal(err)
	}
	for range followers {
		<-done
	}
	t.Logf("%d connected in %v, all done after %v", followers*9/10, connected.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))

	last := all[0].ids[len(all[0].ids)-1]
	want := b.followTo(id, last)
	if len(want) < messages+10 { // messages that come together are answered together
		t.Errorf("only %d events happened", len(want))
	}
	wrong := 0
	for i := range all {
		if all[i].err != nil || !slices.Equal(all[i].ids, want) {
			if wrong++; wrong <= 3 {
				t.Errorf("follower %d: %v, %d of %d events: %v", i, all[i].err, len(all[i].ids), len(want), all[i].ids)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d followers missed something", wrong, followers)
	}
}

// followTo reads the numbers of all frames up to one.
func (b *box) followTo(id string, last int64) []int64 {
	b.t.Helper()
	var out []int64
	for it, err := range b.client.FollowLegacy(b.t.Context(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if it.ID > 0 {
			out = append(out, it.ID)
		}
		if it.ID >= last {
			return out
		}
	}
	return out
}
