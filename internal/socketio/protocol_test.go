package socketio

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// echo is the server that the protocol's published cases are made for: it says
// what it was given to authenticate with, and sends back what it is sent.
func echo(_ context.Context, s *Socket) (Serve, error) {
	back := func(e Event) []any {
		var args []any
		for i, a := range e.Args {
			if b, ok := e.Binary(i); ok {
				args = append(args, b)
				continue
			}
			args = append(args, a)
		}
		return args
	}
	return Serve{
		Run: func(ctx context.Context) {
			auth := s.Auth()
			if auth == nil {
				auth = json.RawMessage("{}")
			}
			_ = s.Emit(ctx, "auth", auth)
		},
		Event: func(ctx context.Context, e Event) {
			switch e.Name {
			case "message":
				_ = s.Emit(ctx, "message-back", back(e)...)
			case "message-with-ack":
				_ = e.Ack(ctx, back(e)...)
			}
		},
	}, nil
}

// step is one thing that a client does or sees.
type step func(c *client)

func sends(text string, attachments ...[]byte) step {
	return func(c *client) { c.t.Helper(); c.send(text, attachments...) }
}

func wants(text string, attachments ...[]byte) step {
	return func(c *client) { c.t.Helper(); c.want(text, attachments...) }
}

func enters(namespace, auth string) step {
	return func(c *client) { c.t.Helper(); c.enter(namespace, auth) }
}

func closes(c *client) { c.t.Helper(); c.closed() }

var (
	one, two = []byte{1, 2, 3}, []byte{4, 5, 6}
	entered  = []step{enters("/", ""), wants(`2["auth",{}]`)}
)

// after is what a client does once it is in.
func after(steps ...step) []step { return append(entered[:len(entered):len(entered)], steps...) }

// cases are those of the protocol's own test suite, under its names, and below
// them some that it leaves out.
var cases = map[string][]step{
	"should allow connection to the main namespace":                  entered,
	"should allow connection to the main namespace with a payload":   {enters("/", `{"token":"123"}`), wants(`2["auth",{"token":"123"}]`)},
	"should allow connection to a custom namespace":                  {enters("/custom", ""), wants(`2/custom,["auth",{}]`)},
	"should allow connection to a custom namespace with a payload":   {enters("/custom", `{"token":"abc"}`), wants(`2/custom,["auth",{"token":"abc"}]`)},
	"should disallow connection to an unknown namespace":             {sends("0/random"), wants(`4/random,{"message":"Invalid namespace"}`)},
	"should disallow connection with an invalid handshake":           {sends("abc"), closes},
	"should disconnect from the main namespace":                      after(sends("1"), enters("/custom", ""), wants(`2/custom,["auth",{}]`)),
	"should connect then disconnect from a custom namespace":         after(enters("/custom", ""), wants(`2/custom,["auth",{}]`), sends("1/custom"), sends(`2["message","message to main namespace"]`), wants(`2["message-back","message to main namespace"]`)),
	"should send a plain-text packet":                                after(sends(`2["message",1,"2",{"3":[true]}]`), wants(`2["message-back",1,"2",{"3":[true]}]`)),
	"should send a packet with binary attachments":                   after(sends(`52-["message",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, one, two), wants(`52-["message-back",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, one, two)),
	"should send a plain-text packet with an ack":                    after(sends(`2456["message-with-ack",1,"2",{"3":[false]}]`), wants(`3456[1,"2",{"3":[false]}]`)),
	"should send a packet with binary attachments and an ack":        after(sends(`52-789["message-with-ack",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, one, two), wants(`62-789[{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`, one, two)),
	"should close upon invalid format (unknown packet type)":         after(sends("abc"), closes),
	"should close upon invalid format (invalid payload format)":      after(sends("2{}"), closes),
	"should close upon invalid format (invalid ack id)":              after(sends(`2abc["message-with-ack",1,"2",{"3":[false]}]`), closes),
	"a namespace that was left can be entered again":                 after(sends("1"), enters("/", ""), wants(`2["auth",{}]`)),
	"a query after the namespace is ignored":                         {sends("0/random?a=b,"), wants(`4/random,{"message":"Invalid namespace"}`)},
	"an unknown namespace does not hurt the others":                  {sends("0/random"), wants(`4/random,{"message":"Invalid namespace"}`), enters("/", ""), wants(`2["auth",{}]`)},
	"an event before the namespace is asked for ends the connection": {sends(`2["message"]`), closes},
	"an event for another namespace ends the connection":             after(sends(`2/custom,["message"]`), closes),
	"an ack for another namespace ends the connection":               after(sends(`3/custom,1[]`), closes),
	"leaving a namespace without being in ends the connection":       after(sends(`1/custom`), closes),
	"an event after leaving ends the connection":                     after(sends(`1`), sends(`2["message"]`), closes),
	"asking twice ends the connection":                               after(sends("0"), closes),
	"a packet of the server's ends the connection":                   after(sends(`4{"message":"no"}`), closes),
	"a reserved name ends the connection":                            after(sends(`2["disconnect"]`), closes),
	"an attachment of nothing ends the connection":                   after(func(c *client) { _ = c.post(c.ctx, frame{binary: one}) }, closes),
	"a packet amid attachments ends the connection":                  after(sends(`52-["message"]`, one), sends(`2["message"]`), closes),
	"too many attachments end the connection":                        after(sends(`511-["message"]`), closes),
	"an ack of nothing is ignored":                                   after(sends(`399[1]`), sends(`2["message"]`), wants(`2["message-back"]`)),
	"a dangling placeholder is an object":                            after(sends(`2["message",{"_placeholder":true,"num":0}]`), wants(`2["message-back",{"_placeholder":true,"num":0}]`)),
}

func TestProtocol(t *testing.T) {
	_, url := listen(t, Options{}, map[string]Handler{"/": echo, "/custom": echo})
	both(t, func(t *testing.T, transport string) {
		for name, steps := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := dial(t, url, transport)
				for _, do := range steps {
					do(c)
				}
			})
		}
	})
}

// hasty sends a packet on new connections until one lasts long enough for the
// answer: the tests below have servers with little patience.
func hasty(t *testing.T, url, transport, packet string) (*client, string) {
	t.Helper()
	for {
		c := dial(t, url, transport)
		c.send(packet)
		if f, ok := <-c.frames; ok {
			return c, f.text
		}
	}
}

func TestProtocolClosesIfNoHandshakeIsReceived(t *testing.T) {
	_, url := listen(t, Options{ConnectTimeout: 30 * time.Millisecond}, map[string]Handler{"/": echo})
	both(t, func(t *testing.T, transport string) {
		t.Run("at all", func(t *testing.T) {
			dial(t, url, transport).closed()
		})
		t.Run("but a refusal", func(t *testing.T) {
			c, answer := hasty(t, url, transport, "0/random")
			if answer != `44/random,{"message":"Invalid namespace"}` {
				t.Errorf("the answer is %s", answer)
			}
			c.closed()
		})
		t.Run("after leaving", func(t *testing.T) {
			c, _ := hasty(t, url, transport, "0")
			c.want(`2["auth",{}]`)
			c.send("1")
			c.closed()
		})
	})
}

func TestProtocolKeepsWhoIsIn(t *testing.T) {
	_, url := listen(t, Options{ConnectTimeout: 30 * time.Millisecond}, map[string]Handler{"/": echo})
	both(t, func(t *testing.T, transport string) {
		c, _ := hasty(t, url, transport, "0")
		c.want(`2["auth",{}]`)
		dial(t, url, transport).closed() // later than the first would have been
		text := strings.Repeat("é", 1000)
		c.send(`2["message","` + text + `"]`)
		c.want(`2["message-back","` + text + `"]`)
	})
}
