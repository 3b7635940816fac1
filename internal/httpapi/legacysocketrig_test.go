package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deckhand/internal/live"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// newSocketRig is a rig whose hub tells statuses too, as the real one does. ada and
// bob have settings.
func newSocketRig(t *testing.T, tunes ...tune) *rig {
	t.Helper()
	r := newRig(t, append([]tune{{config: func(c *Config) {
		c.Conversations.Hub = live.New(c.Conversations.Log, func(id session.ID, e session.Event) (live.Frame, bool, error) {
			f, err := v0.Encode(id, e)
			frame := live.Frame{Data: f.JSON}
			if f.Kind == v0.Status {
				frame.Event = live.EventStatus
			}
			return frame, err == nil && f.Kind != v0.None, err
		})
		c.Conversations.Sessions.Observe(c.Conversations.Hub)
		c.Legacy.Sockets.Engine.PingInterval, c.Legacy.Sockets.Engine.PingTimeout = time.Hour, time.Hour // clients here read when they like
	}}}, tunes...)...)
	r.settle("ada", "bob")
	return r
}

// legacyClient is just enough of a Socket.IO client. It reads when it is asked to.
type legacyClient struct {
	r *rig
	// over has the two transports: send a packet, and take the packets that came.
	send func(packet string) error
	take func() ([]string, error)
	quit func()

	came   []string // packets that were taken and not looked at
	sid    string   // of a connection over polling
	pid    string
	offset string
}

// join is how a client connects.
type join struct {
	user      string // whose key; "" for none
	transport string // websocket if empty
	query     url.Values
	auth      any
	header    []string
}

// q makes a query for a conversation.
func q(id string, more ...string) url.Values {
	v := url.Values{"conversation_id": {id}, "latest_event_id": {"-1"}, "providers_set": {""}}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

// connect opens a connection and asks for the namespace; answer is the packet that came back.
func (r *rig) connect(j join) (c *legacyClient, answer string) {
	r.t.Helper()
	v := url.Values{"EIO": {"4"}, "transport": {"websocket"}, "recover": {"1"}}
	for name, values := range j.query {
		v[name] = values
	}
	if key := r.keys[j.user]; key != "" {
		v.Set("session_api_key", key)
	}
	c = &legacyClient{r: r}
	if j.transport == "polling" {
		v.Set("transport", "polling")
		c.poll(v, j.header)
	} else {
		c.dial(v, j.header)
	}
	r.t.Cleanup(func() { c.quit() })
	if hello := c.packet(); !strings.HasPrefix(hello, `0{"sid":`) {
		r.t.Fatalf("%q", hello)
	}
	auth := ""
	if j.auth != nil {
		b, err := json.Marshal(j.auth)
		if err != nil {
			r.t.Fatal(err)
		}
		auth = string(b)
	}
	c.must(c.send("40" + auth))
	answer = c.packet()
	if in, ok := strings.CutPrefix(answer, "40"); ok {
		var ids struct{ SID, PID string }
		if json.Unmarshal([]byte(in), &ids) != nil || ids.SID == "" || ids.PID == "" {
			r.t.Fatalf("%q", answer)
		}
		c.pid = ids.PID
	}
	return c, answer
}

// joined is connect for those who are let in.
func (r *rig) joined(j join) *legacyClient {
	r.t.Helper()
	c, answer := r.connect(j)
	if c.pid == "" {
		r.t.Fatalf("refused: %s", answer)
	}
	return c
}

func (c *legacyClient) must(err error) {
	c.r.t.Helper()
	if err != nil {
		c.r.t.Fatal(err)
	}
}

func (c *legacyClient) dial(v url.Values, header []string) {
	c.r.t.Helper()
	ctx := c.r.t.Context()
	req := http.Request{Header: http.Header{}}
	setHeader(&req, header)
	conn, _, err := websocket.Dial(ctx, c.r.base+"/socket.io/?"+v.Encode(), &websocket.DialOptions{HTTPClient: c.r.client, HTTPHeader: req.Header})
	c.must(err)
	conn.SetReadLimit(-1)
	c.send = func(packet string) error { return conn.Write(ctx, websocket.MessageText, []byte(packet)) }
	c.take = func() ([]string, error) {
		_, b, err := conn.Read(ctx)
		return []string{string(b)}, err
	}
	c.quit = func() { _ = conn.CloseNow() }
}

func (c *legacyClient) poll(v url.Values, header []string) {
	c.r.t.Helper()
	ask := func(method, body string) ([]string, error) {
		req := c.r.request(method, "/socket.io/?"+v.Encode(), strings.NewReader(body), append([]string{"X-Session-API-Key", "", "Content-Type", "text/plain;charset=UTF-8"}, header...)...)
		res, err := c.r.client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = errors.New(res.Status + ": " + string(b))
		}
		return strings.Split(string(b), "\x1e"), err
	}
	c.send = func(packet string) error {
		_, err := ask("POST", packet)
		return err
	}
	c.take = func() ([]string, error) { return ask("GET", "") }
	first, err := c.take()
	c.must(err)
	var hello struct{ SID string }
	c.must(json.Unmarshal([]byte(strings.TrimPrefix(first[0], "0")), &hello))
	v.Set("sid", hello.SID)
	c.sid = hello.SID
	c.came = first
	c.quit = func() { _, _ = ask("POST", "1") } // a polling client that goes silent would stay for a while
}

// packet is the next one; "" when the connection is over. Pings are answered.
func (c *legacyClient) packet() string {
	c.r.t.Helper()
	for {
		for len(c.came) == 0 {
			came, err := c.take()
			if err != nil {
				return ""
			}
			c.came = came
		}
		p := c.came[0]
		c.came = c.came[1:]
		switch p {
		case "2":
			c.must(c.send("3"))
		case "6":
		case "1":
			return ""
		default:
			return p
		}
	}
}

// heard is an oh_event. Whole is its JSON.
type heard struct {
	ID          int64           `json:"-"`
	Named       json.RawMessage `json:"id"`
	Source      string
	Action      string
	Observation string
	Extras      struct {
		State string `json:"agent_state"`
	}
	Args struct {
		Content string
	}
	Status  bool   `json:"status_update"`
	Title   string `json:"conversation_title"`
	Error   bool
	Message string
	whole   string
}

// event is the next oh_event; offsets are noted on the way. What else comes ends the test.
func (c *legacyClient) event() heard {
	c.r.t.Helper()
	for {
		p := c.packet()
		if at, ok := strings.CutPrefix(p, `42["offset",`); ok {
			c.must(json.Unmarshal([]byte(strings.TrimSuffix(at, "]")), &c.offset))
			continue
		}
		e, ok := strings.CutPrefix(p, `42["oh_event",`)
		if !ok {
			c.r.t.Fatalf("instead of an event: %.300q", p)
		}
		out := heard{ID: -1, whole: strings.TrimSuffix(e, "]")}
		c.must(json.Unmarshal([]byte(out.whole), &out))
		_ = json.Unmarshal(out.Named, &out.ID) // a status has a name, and others have none
		return out
	}
}

// until reads events up to one that is so, and returns all of them.
func (c *legacyClient) until(so func(heard) bool) []heard {
	c.r.t.Helper()
	var out []heard
	for {
		e := c.event()
		if out = append(out, e); so(e) {
			return out
		}
	}
}

func (c *legacyClient) untilState(s session.AgentState) []heard {
	c.r.t.Helper()
	return c.until(func(e heard) bool { return e.Extras.State == string(s) })
}

func (c *legacyClient) untilID(id int64) []heard {
	c.r.t.Helper()
	return c.until(func(e heard) bool { return e.ID == id })
}

// revoked checks what a client meets whose key was revoked: over a WebSocket it is told, and its polls are refused.
func (c *legacyClient) revoked() {
	c.r.t.Helper()
	if c.sid != "" {
		if came, err := c.take(); err == nil || !strings.Contains(err.Error(), "403") {
			c.r.t.Errorf("a poll with a revoked key: %q, %v", came, err)
		}
		return
	}
	if e := c.event(); !e.Error || e.Message != "The key was revoked or has expired." {
		c.r.t.Errorf("%s", e.whole)
	}
	c.left()
}

// emit sends what a client wants.
func (c *legacyClient) emit(name, action string) {
	c.r.t.Helper()
	c.must(c.send(`42["` + name + `",` + action + `]`))
}

// ask emits and returns the acknowledgement.
func (c *legacyClient) ask(name, action string) string {
	c.r.t.Helper()
	c.must(c.send(`427["` + name + `",` + action + `]`))
	for {
		if p := c.packet(); strings.HasPrefix(p, "437") || p == "" {
			return strings.TrimPrefix(p, "437")
		}
	}
}

// wants is a change of the agent's state.
func wants(s session.AgentState) string {
	return `{"action":"change_agent_state","args":{"agent_state":"` + string(s) + `"}}`
}

func message(text string) string {
	return `{"action":"message","args":{"content":` + strconv.Quote(text) + `,"image_urls":[],"file_urls":[],"timestamp":"2025-10-01T10:00:00.000Z"}}`
}

// update applies a rule, as the loop does.
func (r *rig) update(id string, rule func(session.State) ([]session.Payload, error)) session.State {
	r.t.Helper()
	s, err := r.sessions.Update(r.t.Context(), session.ID(id), rule)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// say appends a message of the person's.
func (r *rig) say(id, text string) session.State {
	r.t.Helper()
	return r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: text}) })
}

// take lets a loop have the conversation, whose workspace is ready at once.
func (r *rig) take(id string) (claim int64) {
	r.t.Helper()
	claim = r.update(id, func(s session.State) ([]session.Payload, error) { return s.Take("loop") }).Claim
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Prepared(claim, session.WorkspaceReady{}) })
	return claim
}

// awaits brings a conversation with a message to where a tool call waits for the person.
func (r *rig) awaits(id string) (claim int64) {
	r.t.Helper()
	claim = r.take(id)
	for _, rule := range []func(s session.State) ([]session.Payload, error){
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(claim) },
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(claim, session.ModelAsked{Call: "m1", Model: "m"}, nil)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.Answered(claim, session.ModelAnswered{Call: "m1", ToolCalls: []session.ToolCall{{ID: "c1", Name: "execute_bash", Args: json.RawMessage(`{"command":"date"}`)}}})
		},
		func(s session.State) ([]session.Payload, error) {
			return s.CallNext(claim, session.RiskHigh, &session.ApprovalAsked{Reason: "it is risky"})
		},
	} {
		r.update(id, rule)
	}
	return claim
}
