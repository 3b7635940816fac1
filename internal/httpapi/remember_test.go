package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"deckhand/api"
)

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRememberPrompt(t *testing.T) {
	var questions []string
	answer, failure := "Sure. <update_prompt>\nWrite down: use make.\n</update_prompt> Done.", error(nil)
	r := newRig(t, tune{config: func(c *Config) {
		c.Conversations.Ask = func(_ context.Context, user, system, question string) (string, error) {
			questions = append(questions, question)
			if user != "ada" || !strings.Contains(system, "<update_prompt>") {
				t.Errorf("%s %s", user, system)
			}
			return answer, failure
		}
	}})
	r.settle("ada")
	id := r.create(`{"repository":"team/app","initial_user_msg":"message 0"}`)
	for i := 1; i <= 20; i++ {
		r.do("POST", "/api/conversations/"+id+"/message", fmt.Sprintf(`{"message":"message %d."}`, i)).want(t, 200)
	}
	number := map[string]int64{}
	page := decoded[api.EventPage](t, r.do("GET", "/api/conversations/"+id+"/events?limit=100", ""))
	for _, raw := range page.Events {
		var e struct {
			ID   int64
			Args struct{ Content string }
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		number[e.Args.Content] = e.ID
	}
	at := func(event any) string {
		return fmt.Sprintf("/api/conversations/%s/remember-prompt?event_id=%v", id, event)
	}
	if a := r.do("GET", at(number["message 10."]), "").want(t, 200); a.body != `{"status":"success","prompt":"Write down: use make."}` {
		t.Errorf("%s", a.body)
	}
	// Four before, the one that is meant, and five after it.
	for i := range 21 {
		if shown := strings.Contains(questions[0], fmt.Sprintf("message %d.", i)); shown != (i >= 6 && i <= 15) {
			t.Errorf("message %d is shown: %t", i, shown)
		}
	}
	if !strings.Contains(questions[0], "team/app") || !strings.Contains(questions[0], "MEANT:\nThe user (message): message 10.") {
		t.Errorf("%s", questions[0])
	}
	// Without a model, or one that does not do what it is told, the prompt is put together.
	for _, c := range []struct {
		answer string
		err    error
	}{{"", errors.New("no model")}, {"I will not.", nil}, {"<update_prompt> </update_prompt>", nil}} {
		answer, failure = c.answer, c.err
		r.do("GET", at(number["message 10."]), "").want(t, 200, `"status":"success"`, "team/app", ".openhands/microagents/", "message 10.", "message 6.", "message 15.")
	}
	r.do("GET", at(number["message 20."]), "").want(t, 200, "message 20.")
	r.do("GET", at(0), "").want(t, 404, "no event with this number")
	r.do("GET", at(100000), "").want(t, 404, "no event with this number")
	r.do("GET", at("x"), "").want(t, 422, `["query","event_id"]`)
	r.do("GET", "/api/conversations/"+id+"/remember-prompt", "").want(t, 422, `["query","event_id"]`)
	r.do("GET", "/api/conversations/nothing/remember-prompt?event_id=1", "").want(t, 404, "CONVERSATION$NOT_FOUND")
	r.as("bob", "GET", at(1), "").want(t, 404, "CONVERSATION$NOT_FOUND")
}
