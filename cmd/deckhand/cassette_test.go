package main

import (
	"strings"
	"testing"
)

// A conversation's model traffic is recorded, and plays for somebody who has no
// key and no address of a model.
func TestCassettesThroughTheAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLab(t, "", "--record-cassettes", dir, "--cassettes", dir)
	p := l.person(t, "recorder", steps(shell("echo take one")))
	id := p.begin("Say it.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	asked := len(p.requests())

	p.set(`"llm_model":"cassette/` + id + `","llm_base_url":"","llm_api_key":""`)
	again := p.begin("Say it.")
	p.follow(again, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(again), "run"); !strings.Contains(got, "take one") {
		t.Errorf("it played %s", got)
	}
	if got := len(p.requests()); got != asked {
		t.Errorf("the model was asked %d times more", got-asked)
	}
}
