package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/session"
)

const toStream = toCreate + "/stream"

// listReader reads the stream of a user's list.
type listReader struct {
	t  *testing.T
	in *bufio.Reader
}

func (r *rig) follow(user string) *listReader {
	r.t.Helper()
	req := r.request("GET", toStream, nil, "X-Session-API-Key", r.keys[user])
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return &listReader{r.t, bufio.NewReader(res.Body)}
}

// next is the next frame: its event and its data. It is "end" after the last.
func (l *listReader) next() (event string, data []byte) {
	l.t.Helper()
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			return "end", nil
		}
		switch name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": "); name {
		case "event":
			event = value
		case "data":
			return event, []byte(value)
		}
	}
}

// conversation is the next frame, which must be one.
func (l *listReader) conversation() api.Conversation {
	l.t.Helper()
	event, data := l.next()
	var c api.Conversation
	if err := json.Unmarshal(data, &c); err != nil || event != "conversation" {
		l.t.Fatalf("%s: %s (%v)", event, data, err)
	}
	return c
}

func TestStreamConversations(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	var ids []string
	for range 22 {
		ids = append(ids, r.create(`{}`))
	}
	stream, other := r.follow("ada"), r.follow("bob")
	if event, data := other.next(); event != "snapshot" || string(data) != `{"results":[]}` {
		t.Errorf("bob gets %s %s", event, data)
	}
	event, data := stream.next()
	var snapshot api.ConversationPage
	if err := json.Unmarshal(data, &snapshot); err != nil || event != "snapshot" || len(snapshot.Results) != 20 {
		t.Fatalf("%s %s", event, data)
	}
	// What the stream says of a conversation is what the list says, to the letter.
	page := r.do("GET", toCreate+"?limit=20", "").want(t, 200).body
	if results, _, _ := strings.Cut(page, `,"next_page_id"`); results+"}" != string(data) {
		t.Errorf("the snapshot is\n%s\nthe list is\n%s", data, page)
	}
	bobs := decoded[api.ConversationResponse](t, r.as("bob", "POST", toCreate, `{}`).want(t, 200)).ConversationID
	if c := other.conversation(); c.ConversationID != bobs {
		t.Errorf("bob is told of %+v", c)
	}
	// One that was not in the snapshot, a new one, and one that goes.
	r.do("PATCH", toCreate+"/"+ids[0], `{"title":"A better name"}`).want(t, 200)
	if c := stream.conversation(); c.ConversationID != ids[0] || c.Title != "A better name" || c.SessionAPIKey != nil {
		t.Errorf("%+v", c)
	}
	id := r.create(`{"repository":"team/app","initial_user_msg":"hello"}`)
	if c := stream.conversation(); c.ConversationID != id || c.Status != "STARTING" || *c.SelectedRepository != "team/app" || c.LastEventID != 3 || c.Title != "hello" {
		t.Errorf("%+v", c)
	}
	r.happens(id, session.Claimed{By: "loop"}, session.WorkspaceReady{}, session.TurnBegan{})
	if c := stream.conversation(); c.Status != "RUNNING" || c.AgentState != "running" || c.LastEventID != 6 {
		t.Errorf("%+v", c)
	}
	r.do("DELETE", toCreate+"/"+ids[5], "").want(t, 200)
	if event, data := stream.next(); event != "deleted" || string(data) != `{"conversation_id":"`+ids[5]+`"}` {
		t.Errorf("%s %s", event, data)
	}
}

// A stream ends with its key, and with the server.
func TestStreamConversationsEnds(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	ada, bob := r.follow("ada"), r.follow("bob")
	ada.next()
	bob.next()
	keys := decoded[[]api.Key](t, r.do("GET", "/api/keys", "").want(t, 200))
	r.do("DELETE", "/api/keys/"+keys[0].ID, "").want(t, 200)
	if event, data := ada.next(); event != "end" {
		t.Errorf("without a key: %s %s", event, data)
	}
	r.as("bob", "POST", toCreate, `{}`).want(t, 200)
	bob.conversation()
	r.api.Close()
	if event, data := bob.next(); event != "end" {
		t.Errorf("without a server: %s %s", event, data)
	}
}

// No conversation hides behind the address of the stream.
func TestNoConversationIsCalledStream(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.do("POST", toCreate, `{"conversation_id":"stream"}`).want(t, 422, "conversation_id")
	r.create(`{"conversation_id":"streams"}`)
	r.do("GET", toCreate+"/streams", "").want(t, 200)
	if a := r.do("POST", toStream, ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The text is looked for in titles, repositories and ids.
func TestListQuery(t *testing.T) {
	r := newRig(t, pairs())
	r.settle("ada")
	titled, on, named := r.create(`{}`), r.create(`{"repository":"team/Needle-App"}`), r.create(`{"conversation_id":"the-needle-1"}`)
	r.do("PATCH", toCreate+"/"+titled, `{"title":"A needle in the hay"}`).want(t, 200)
	r.create(`{}`)
	r.do("POST", toCreate+"/"+on+"/stop", "").want(t, 200)
	for query, want := range map[string][]string{
		"query=NEEDLE":                {titled, on, named},
		"query=needle&limit=1":        {titled, on, named},
		"query=team/n":                {on},
		"query=the-needle-1":          {named},
		"query=in+the+HAY":            {titled},
		"query=needle&status=STOPPED": {on},
		"query=nEEdle&status=RUNNING": {},
		"query=haystack":              {},
	} {
		got := map[string]bool{}
		for _, id := range r.walk(query, nil) {
			got[id] = true
		}
		for _, id := range want {
			if !got[id] {
				t.Errorf("%s: %s is not found", query, id)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
