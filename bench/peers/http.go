package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"deckhand/internal/load"
)

// caller makes requests with JSON bodies.
type caller struct {
	client *http.Client
	base   string
	key    string // sent as X-Session-API-Key, if there is one
}

func newCaller(base, key string) caller {
	return caller{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}, base, key}
}

// call sends a body, unless it is nil, and decodes the answer into out, unless that is nil.
func (c caller) call(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("X-Session-API-Key", c.key)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 300:
		return &load.StatusError{Status: res.StatusCode, Body: string(text)}
	case out != nil:
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	return nil
}

// openHands speaks the legacy API of OpenHands 0.x, where a client looks for new events again
// and again.
type openHands struct{ caller }

func newOpenHands(base, key string) API { return openHands{newCaller(base, key)} }

func (o openHands) Prepare(ctx context.Context, modelURL string) error {
	return o.call(ctx, "POST", "/api/settings", map[string]any{
		"llm_model": load.ModelName, "llm_base_url": modelURL, "llm_api_key": "none", "agent": "CodeActAgent", "language": "en", "confirmation_mode": false}, nil)
}

func (o openHands) create(ctx context.Context, body map[string]string) (*openHandsTalk, error) {
	var made struct {
		ID string `json:"conversation_id"`
	}
	err := o.call(ctx, "POST", "/api/conversations", body, &made)
	return &openHandsTalk{o, "/api/conversations/" + made.ID, 0}, err
}

func (o openHands) Create(ctx context.Context) error {
	_, err := o.create(ctx, map[string]string{})
	return err
}

func (o openHands) Begin(ctx context.Context) (Conversation, error) {
	t, err := o.create(ctx, map[string]string{"initial_user_msg": "Say hi."})
	if err != nil {
		return nil, err
	}
	return t, t.await(ctx)
}

type openHandsTalk struct {
	openHands
	path string
	next int64 // number of the next event
}

func (t *openHandsTalk) Turn(ctx context.Context) error {
	if err := t.call(ctx, "POST", t.path+"/message", map[string]string{"message": "And now?"}, nil); err != nil {
		return err
	}
	return t.await(ctx)
}

func (t *openHandsTalk) Close() { _ = t.call(context.Background(), "DELETE", t.path, nil, nil) }

// pollTime is how often a client looks for new events, and the error of its times.
const pollTime = 20 * time.Millisecond

// await looks for events until the agent waits for the user again.
func (t *openHandsTalk) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, load.TurnTime)
	defer cancel()
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	ran := false
	for {
		var page struct {
			Events []struct {
				ID          int64  `json:"id"`
				Observation string `json:"observation"`
				Extras      struct {
					State string `json:"agent_state"`
				} `json:"extras"`
			} `json:"events"`
		}
		err := t.call(ctx, "GET", fmt.Sprintf("%s/events?start_id=%d&limit=100", t.path, t.next), nil, &page)
		var status *load.StatusError
		if err != nil && !(errors.As(err, &status) && status.Status == http.StatusTooManyRequests) {
			return err
		}
		for _, e := range page.Events {
			t.next = max(t.next, e.ID+1)
			ran = ran || e.Observation == "run"
			if e.Observation != "agent_state_changed" {
				continue
			}
			switch e.Extras.State {
			case "awaiting_user_input", "finished":
				if ran {
					return nil
				}
			case "error", "stopped", "rejected":
				return fmt.Errorf("a turn ended with %s", e.Extras.State)
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("the turn did not end")
		case <-tick.C:
		}
	}
}

// openCode speaks the API of opencode's server, where a message is answered when the turn has ended.
// Its start configures the provider "bench" with the model "instant".
type openCode struct{ caller }

func newOpenCode(base, key string) API { return openCode{newCaller(base, key)} }

func (o openCode) Prepare(context.Context, string) error { return nil }

func (o openCode) create(ctx context.Context) (*openCodeTalk, error) {
	var made struct {
		ID string `json:"id"`
	}
	err := o.call(ctx, "POST", "/session", map[string]string{}, &made)
	return &openCodeTalk{o, "/session/" + made.ID, 0}, err
}

func (o openCode) Create(ctx context.Context) error {
	_, err := o.create(ctx)
	return err
}

func (o openCode) Begin(ctx context.Context) (Conversation, error) {
	t, err := o.create(ctx)
	if err != nil {
		return nil, err
	}
	return t, t.Turn(ctx)
}

type openCodeTalk struct {
	openCode
	path string
	runs int // commands that were run
}

type openCodeMessage struct {
	Info struct {
		Error json.RawMessage `json:"error"`
	} `json:"info"`
	Parts []struct {
		Type  string `json:"type"`
		State struct {
			Status string `json:"status"`
		} `json:"state"`
	} `json:"parts"`
}

func (t *openCodeTalk) Turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, load.TurnTime)
	defer cancel()
	var answer openCodeMessage
	err := t.call(ctx, "POST", t.path+"/message", map[string]any{
		"model": map[string]string{"providerID": "bench", "modelID": "instant"}, "parts": []any{map[string]string{"type": "text", "text": "Say hi."}}}, &answer)
	if err != nil {
		return err
	}
	if len(answer.Info.Error) > 0 {
		return fmt.Errorf("a turn ended with %.200s", answer.Info.Error)
	}
	if t.runs > 0 {
		return nil
	}
	// Only the first turn is checked: reading all messages is not part of a turn.
	var all []openCodeMessage
	if err := t.call(ctx, "GET", t.path+"/message", nil, &all); err != nil {
		return err
	}
	for _, m := range all {
		for _, p := range m.Parts {
			if p.Type == "tool" && p.State.Status == "completed" {
				t.runs++
			}
		}
	}
	if t.runs == 0 {
		return errors.New("the turn ran no command")
	}
	return nil
}

func (t *openCodeTalk) Close() { _ = t.call(context.Background(), "DELETE", t.path, nil, nil) }
