package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const tools = `"tools": [{"type":"function","function":{"name":"finish","parameters":{"type":"object","properties":{}}}},
	{"type":"function","function":{"name":"execute_bash","parameters":{"type":"object",
	"properties":{"command":{"type":"string"},"risk":{"type":"string","enum":["LOW","HIGH"]}},"required":["command","risk"]}}}]`

// The model has a command run, and then says what came of it.
func TestModelAnswers(t *testing.T) {
	t.Parallel()
	m, err := StartModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	ask := func(path, body string) (int, string) {
		res, err := http.Post(m.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	const said, shown = `{"role":"user","content":"Go."}`, `{"role":"user","content":"Go."},{"role": "tool","content":"hi"}`
	const call, sentence = `"arguments":"{\"command\":\"echo hi\",\"risk\":\"LOW\"}"`, "The shell says hi."
	for name, c := range map[string]struct{ body, want string }{
		"a message":             {`{` + tools + `,"messages":[` + said + `]}`, call},
		"a streamed message":    {`{"stream":true,` + tools + `,"messages":[` + said + `]}`, call},
		"a result":              {`{` + tools + `,"messages":[` + shown + `]}`, sentence},
		"a streamed result":     {`{"stream": true,` + tools + `,"messages":[` + shown + `]}`, sentence},
		"a message after that":  {`{` + tools + `,"messages":[` + shown + `,` + said + `]}`, call},
		"a title without tools": {`{"messages":[` + said + `]}`, sentence},
	} {
		status, text := ask("/chat/completions", c.body)
		if status != http.StatusOK || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s; wanted %s", name, status, text, c.want)
		}
		if streamed := strings.HasPrefix(text, "data: "); streamed != strings.Contains(name, "streamed") || streamed && !strings.HasSuffix(text, "data: [DONE]\n\n") || !streamed && !json.Valid([]byte(text)) {
			t.Errorf("%s: %s is not how it was asked for", name, text)
		}
	}
	if status, _ := ask("/responses", `{}`); status != http.StatusNotFound {
		t.Errorf("another path: %d", status)
	}
}

func TestShareAndHammer(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	s, err := Share(4, 100, time.Hour, func(int, int) error { done.Add(1); return nil })
	if err != nil || done.Load() != 100 || len(s.Delays) != 100 {
		t.Errorf("%d of 100 done, %d timed: %v", done.Load(), len(s.Delays), err)
	}
	failed := errors.New("failed")
	if _, err := Share(4, 100, time.Hour, func(_, i int) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, wanted the failure", err)
	}
	if _, err := Hammer(2, time.Hour, func(int) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, wanted the failure at once", err)
	}
	if s, err := Share(1, 100, -1, func(int, int) error { return nil }); err != nil || len(s.Delays) != 0 {
		t.Errorf("%d done after the time was over: %v", len(s.Delays), err)
	}
}

func TestPatientWaitsForTheLimitOnly(t *testing.T) {
	t.Parallel()
	asked := 0
	answer, err := Patient(func() ([]byte, error) {
		if asked++; asked < 3 {
			return nil, &StatusError{Status: http.StatusTooManyRequests}
		}
		return []byte("ok"), nil
	})
	if err != nil || string(answer) != "ok" || asked != 3 {
		t.Errorf("%s after %d tries: %v", answer, asked, err)
	}
	if _, err := Patient(func() ([]byte, error) { return nil, &StatusError{Status: http.StatusForbidden} }); err == nil {
		t.Error("another refusal was taken for success")
	}
}

func TestStreamsAreRead(t *testing.T) {
	t.Parallel()
	text := "event: delta\ndata: a fragment\n\n" +
		"id: 4\ndata: {\"observation\":\"run\"}\n\n: ping\n\n" +
		"id: 5\ndata: {\"observation\":\"agent_state_changed\",\"extras\":{\"agent_state\":\"awaiting_user_input\"}}\n\n"
	s := &Stream{link: &Link{}, in: bufio.NewReader(strings.NewReader(text))}
	id, data, err := s.Event()
	if err != nil || id != 4 || string(data) != `{"observation":"run"}` {
		t.Errorf("event %d %s: %v", id, data, err)
	}
	if id, data, err = s.Event(); err != nil || id != 5 {
		t.Errorf("event %d %s: %v", id, data, err)
	}
	if _, _, err = s.Event(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}
