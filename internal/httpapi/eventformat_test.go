package httpapi

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"deckhand/api"
	"deckhand/internal/session"
)

// kindsOf are the kinds of the events of a page.
func kindsOf(t *testing.T, a answer) string {
	t.Helper()
	var out []string
	for _, raw := range decoded[api.EventPage](t, a).Events {
		var e api.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Kind)
	}
	return strings.Join(out, " ")
}

// Pages, server-sent events and the WebSocket tell the same events in the format deckhand,
// and say its version. Another format is refused, and without one it is legacy.
func TestEventsAsLogged(t *testing.T) {
	r := newRig(t)
	id := r.filterable()
	r.append(id, session.Noted{ID: "X", Message: "A notice."}, session.Claimed{By: "process"})
	to := "/api/conversations/" + id + "/events"

	page := r.do("GET", to+"?format=deckhand", "").want(t, 200)
	if got := kindsOf(t, page); got != "created user_said tool_called tool_returned tool_called tool_returned model_answered noted" {
		t.Fatalf("the conversation is %s", got)
	}
	for query, want := range map[string]string{
		"include_types=tool_called,user_said":                  "user_said tool_called tool_called",
		"exclude_types=created,tool_returned":                  "user_said tool_called tool_called model_answered noted",
		"exclude_hidden=true":                                  "created user_said tool_called tool_returned model_answered noted",
		"query=ONE.TXT":                                        "tool_returned",
		"reverse=true&limit=2":                                 "noted model_answered",
		"statuses=true&start_id=7":                             "model_answered noted",
		"tools=execute_bash":                                   "tool_called tool_returned tool_called tool_returned",
		"tools=browser,fetch":                                  "",
		"include_types=tool_returned&tools=fetch,execute_bash": "tool_returned tool_returned",
		"display=command":                                      "tool_called tool_returned tool_called tool_returned",
		"display=page,checklist":                               "",
		"include_types=tool_returned&display=page,command":     "tool_returned tool_returned",
	} {
		if got := kindsOf(t, r.do("GET", to+"?format=deckhand&"+query, "").want(t, 200)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if page.header.Get("Deckhand-Event-Version") != "1" || r.do("GET", to, "").want(t, 200).header.Get("Deckhand-Event-Version") != "" {
		t.Errorf("the version is %q", page.header)
	}
	for path, field := range map[string]string{to + "?format=xml": "format", to + "?format=": "format", to + "/stream?format=xml": "format", to + "/stream?format=": "format",
		to + "?tools=fetch":                                        "tools",
		to + "?format=deckhand&display=page,pages":                 "display",
		to + "?display=page":                                       "display",
		to + "?format=deckhand&source=user":                        "source",
		to + "?format=deckhand&include_types=agent_state_changed":  "include_types",
		to + "?format=deckhand&exclude_types=model_usage,nonsense": "exclude_types"} {
		if a := r.do("GET", path, "").want(t, 422); !strings.Contains(a.body, `["query","`+field+`"]`) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if a := r.do("GET", to+"?format=deckhand", `{"source":"user"}`).want(t, 422); !strings.Contains(a.body, `["body","source"]`) {
		t.Errorf("%s", a.body)
	}

	var paged []string
	for _, raw := range decoded[api.EventPage](t, page).Events {
		paged = append(paged, string(raw))
	}
	if streamed := r.streamedEvents(t, to+"/stream?format=deckhand", len(paged)); !slices.Equal(streamed, paged) {
		t.Errorf("the stream has\n%s\nthe page has\n%s", streamed, paged)
	}
	if sent := r.socketEvents(t, to+"/ws?format=deckhand", len(paged)); !slices.Equal(sent, paged) {
		t.Errorf("the socket has\n%s\nthe page has\n%s", sent, paged)
	}
}

// streamedEvents reads so many server-sent events.
func (r *rig) streamedEvents(t *testing.T, path string, n int) (out []string) {
	t.Helper()
	res, err := r.client.Do(r.request("GET", path, nil).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Deckhand-Event-Version") != "1" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	for lines := bufio.NewScanner(res.Body); len(out) < n && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

// socketEvents reads so many events of a WebSocket.
func (r *rig) socketEvents(t *testing.T, path string, n int) (out []string) {
	t.Helper()
	conn, res, err := websocket.Dial(t.Context(), strings.Replace(r.base, "http", "ws", 1)+path, &websocket.DialOptions{HTTPClient: r.client, HTTPHeader: r.request("GET", path, nil).Header})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if res.Header.Get("Deckhand-Event-Version") != "1" {
		t.Errorf("%v", res.Header)
	}
	for len(out) < n {
		_, text, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var frame struct {
			Type string
			Data json.RawMessage
		}
		if err := json.Unmarshal(text, &frame); err != nil || frame.Type != "event" {
			t.Fatalf("%s, %v", text, err)
		}
		out = append(out, string(frame.Data))
	}
	return out
}

// An imported event is found by what it stands for.
func TestImportedEventsByTool(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{"initial_user_msg":"Hi"}`)
	taken := func(event string) session.Payload { return session.Imported{Event: json.RawMessage(event)} }
	r.append(id, taken(`{"source":"agent","observation":"browse","content":"A page","extras":{"url":"https://a.test/"}}`),
		taken(`{"source":"agent","observation":"run","content":"x","extras":{"command":"ls"}}`), taken(`{"source":"agent","action":"message","args":{"content":"Done."}}`))
	to := "/api/conversations/" + id + "/events?format=deckhand&"
	for query, want := range map[string]string{
		"include_types=tool_returned&tools=fetch,browser": "A page",
		"include_types=tool_returned&display=page":        "A page",
		"include_types=model_answered":                    "Done.",
	} {
		if page := decoded[api.EventPage](t, r.do("GET", to+query, "").want(t, 200)); len(page.Events) != 1 || !strings.Contains(string(page.Events[0]), want) {
			t.Errorf("%s: %s, want %s", query, page.Events, want)
		}
	}
	r.do("GET", to+"exclude_types=imported", "").want(t, 200, `"user_said"`)
}
