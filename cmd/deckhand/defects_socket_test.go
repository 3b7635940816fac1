package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deckhand/client"
)

// barewire is a Socket.IO client of the barest kind: text frames over a WebSocket.
type barewire struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

// dial connects and asks for the namespace; query are pairs for the address,
// auth what stands behind the packet's number.
func (b *box) dial(auth string, query ...string) *barewire {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	b.t.Cleanup(cancel)
	v := url.Values{"EIO": {"4"}, "transport": {"websocket"}}
	for i := 0; i+1 < len(query); i += 2 {
		v.Set(query[i], query[i+1])
	}
	conn, _, err := websocket.Dial(ctx, b.base+"/socket.io/?"+v.Encode(), &websocket.DialOptions{HTTPClient: http.DefaultClient})
	if err != nil {
		b.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	b.t.Cleanup(func() { _ = conn.CloseNow() })
	w := &barewire{t: b.t, ctx: ctx, conn: conn}
	if hello := w.packet(); !strings.HasPrefix(hello, `0{"sid":`) {
		b.t.Fatalf("greeted with %s", hello)
	}
	w.send("40" + auth)
	return w
}

func (w *barewire) send(packet string) {
	w.t.Helper()
	if err := w.conn.Write(w.ctx, websocket.MessageText, []byte(packet)); err != nil {
		w.t.Fatal(err)
	}
}

// packet is the next one, heartbeats aside.
func (w *barewire) packet() string {
	w.t.Helper()
	for {
		_, text, err := w.conn.Read(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if string(text) != "2" {
			return string(text)
		}
		w.send("3")
	}
}

// word is an oh_event, as far as it matters here.
type word struct {
	Action, Source string
	Args           struct{ Content string }
}

// event is the next oh_event; other packets are passed over.
func (w *barewire) event() word {
	w.t.Helper()
	for {
		in, ok := strings.CutPrefix(w.packet(), `42["oh_event",`)
		if !ok {
			continue
		}
		var e word
		if err := json.Unmarshal([]byte(strings.TrimSuffix(in, "]")), &e); err != nil {
			w.t.Fatalf("%v: %.300s", err, in)
		}
		return e
	}
}

// heard collects what people said until the last word.
func (w *barewire) heard(last string) []string {
	w.t.Helper()
	var out []string
	for {
		if e := w.event(); e.Action == "message" && e.Source == "user" {
			if out = append(out, e.Args.Content); e.Args.Content == last {
				return out
			}
		}
	}
}

// Clients join again and again while things happen. Each is told of all of it,
// once and in order, whenever it came.
func TestDefect13GapBetweenReplayAndJoin(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	p := l.person(t, "gapless", hello)
	id := p.begin("0")
	const messages, joins = 30, 6
	said := make(chan error, 1)
	joined := make(chan struct{}, joins)
	go func() {
		for i := 1; i <= messages; i++ {
			if err := p.client.Say(t.Context(), id, fmt.Sprint(i), ""); err != nil {
				said <- err
				return
			}
			if i%(messages/joins) == 0 {
				joined <- struct{}{}
			}
		}
		said <- nil
	}()
	var clients []*barewire
	for range joins {
		clients = append(clients, p.dial("", "conversation_id", id, "latest_event_id", "-1", "session_api_key", p.key))
		<-joined
	}
	if err := <-said; err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range messages + 1 {
		want = append(want, fmt.Sprint(i))
	}
	for i, c := range clients {
		if got := c.heard(fmt.Sprint(messages)); !slices.Equal(got, want) {
			t.Errorf("client %d was told %v", i, got)
		}
	}
	// One that has seen a part of it is told of the rest.
	var seen int64
	for _, it := range p.events(id) {
		if it.Event.Action == "message" && it.Event.Source == "user" && strings.Contains(string(it.Event.Args), `"content":"10"`) {
			seen = it.ID
		}
	}
	c := p.dial("", "conversation_id", id, "latest_event_id", itoa(seen), "session_api_key", p.key)
	if got := c.heard(fmt.Sprint(messages)); !slices.Equal(got, want[11:]) {
		t.Errorf("after event %d it was told %v", seen, got)
	}
}

func TestDefect14ReplayBeforeConnectAck(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	for range 5 {
		c := b.dial("", "conversation_id", id, "latest_event_id", "-1", "session_api_key", b.key)
		if first := c.packet(); !strings.HasPrefix(first, `40{"sid":"`) {
			t.Errorf("the first packet is %.200s", first)
		}
		if got := c.heard("hello"); len(got) != 1 {
			t.Errorf("%v", got)
		}
	}
}

func TestDefect15SocketAuthPayloadBreaks(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	for name, c := range map[string]struct {
		auth  string
		query []string
		first string
	}{
		"a key in the payload":                {`{"session_api_key":"` + b.key + `"}`, nil, `40{"sid":"`},
		"a key in the address":                {"", []string{"session_api_key", b.key}, `40{"sid":"`},
		"both":                                {`{"session_api_key":"` + b.key + `"}`, []string{"session_api_key", b.key}, `40{"sid":"`},
		"a payload about something else":      {`{"theme":["dark",{}]}`, []string{"session_api_key", b.key}, `40{"sid":"`},
		"no key":                              {"", nil, `44{"message":"invalid_session_api_key"`},
		"an empty payload":                    {`{}`, nil, `44{"message":"invalid_session_api_key"`},
		"a wrong key in the payload":          {`{"session_api_key":"dh_wrong"}`, nil, `44{"message":"invalid_session_api_key"`},
		"a key in the payload that is a list": {`{"session_api_key":["x"]}`, nil, `44{"message":"invalid_session_api_key"`},
		"a wrong key in the address":          {"", []string{"session_api_key", "dh_wrong"}, `44{"message":"invalid_session_api_key"`},
	} {
		w := b.dial(c.auth, append(c.query, "conversation_id", id, "latest_event_id", "-1")...)
		if got := w.packet(); !strings.HasPrefix(got, c.first) || strings.Contains(got, b.key) {
			t.Errorf("%s: %.200s", name, got)
		}
	}
}

func TestDefect16UnknownIDJoinCreatesConversation(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	code, key, errs := command(t, "key", "create", "--user", "bob", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	bob := *b
	bob.key = strings.TrimSpace(key)
	bob.client = client.New(b.base, bob.key)
	bob.demo("scripted/demo")
	for _, c := range []struct {
		who *box
		id  string
	}{{b, "unknown"}, {b, "../../etc/passwd"}, {b, "a b"}, {b, strings.Repeat("x", 200)}, {&bob, id}, {&bob, "unknown"}} {
		w := c.who.dial("", "conversation_id", c.id, "latest_event_id", "-1", "session_api_key", c.who.key)
		if got := w.packet(); !strings.HasPrefix(got, `44{"message":"Conversation not found"`) {
			t.Errorf("%q: %.200s", c.id, got)
		}
	}
	if got := b.dial("", "latest_event_id", "-1", "session_api_key", b.key).packet(); !strings.HasPrefix(got, `44{"message":"No conversation_id in query params"`) {
		t.Errorf("%.200s", got)
	}
	for who, want := range map[*box]int{b: 1, &bob: 0} {
		if page, err := who.client.Conversations(t.Context(), nil); err != nil || len(page.Results) != want {
			t.Errorf("there are %d conversations, want %d: %v", len(page.Results), want, err)
		}
	}
}
