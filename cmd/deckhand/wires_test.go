package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// wireConfig are the models that speak the wires.
const wireConfig = `
models:
  openai/chat-1: {window: 200000, thinks: true, input: 1, output: 1}
  openai/responses/answers-1: {window: 200000, thinks: true, input: 1, output: 1}
  anthropic/claude-test: {window: 200000, max_output: 8192, thinks: true, input: 1, output: 1}
  gemini/gemini-3-test: {window: 200000, thinks: true, input: 1, output: 1}
  openai/plain-1: {window: 200000, tools: text, input: 1, output: 1}
`

// broken is a repository with a test that fails.
var broken = map[string]string{
	"greet.sh": "greet() {\n    echo \"Helo, $1\"\n}\n",
	"test.sh":  "set -e\n. ./greet.sh\nif [ \"$(greet World)\" != 'Hello, World' ]; then\n    echo FAIL; exit 1\nfi\necho PASS\n",
}

const mended = "greet() {\n    echo \"Hello, $1\"\n}\n"

// makeRepository makes one that looks like a clone, so that there is something to
// compare with.
const makeRepository = `git init -q . && git add -A && git commit -qm 'As it was' && git log --format='by %an <%ae>' &&
git clone -q --bare . .git/theirs && git remote add origin "$PWD/.git/theirs" && git fetch -q origin`

// found is a file in the output of grep: its path, and the line that matches.
var found = regexp.MustCompile(`(?m)^(/\S+/greet\.sh)\n  2: +echo "Helo`)

// mender mends the repository. It goes by what its tools tell it: without the
// right result it does not take the next step, but says what it was shown.
func mender(a llmtest.Asked) llmtest.Reply {
	if !strings.Contains(saidIn(a), "The test fails") {
		if len(results(a)) == 0 {
			return calls(a, shell(makeRepository))
		}
		return llmtest.Reply{Text: "The repository is there."}
	}
	got := results(a)[1:] // the first was about the repository
	last := func(tool, text string) bool {
		return len(got) > 0 && got[len(got)-1].tool == tool && strings.Contains(got[len(got)-1].text, text)
	}
	switch at := len(got); {
	case at == 0:
		r := calls(a, use("grep", map[string]any{"pattern": "Helo", "include": "*.sh"}), shell("sh test.sh"))
		r.Text, r.Reasoning = "I look for the word and run the test.", "A word is misspelt somewhere; grep finds it."
		return r
	case at == 2 && found.MatchString(got[0].text) && last("execute_bash", "FAIL") && last("execute_bash", "exit code 1"):
		r := calls(a, use("str_replace_editor", map[string]any{"command": "str_replace", "path": found.FindStringSubmatch(got[0].text)[1], "old_str": "Helo", "new_str": "Hello"}))
		r.Reasoning = "There it is."
		return r
	case at == 3 && last("str_replace_editor", "Hello, $1"):
		r := calls(a, shell("sh test.sh"))
		r.Reasoning = "Now the test must pass."
		return r
	case at == 4 && last("execute_bash", "PASS") && last("execute_bash", "exit code 0"):
		r := calls(a, use("finish", map[string]any{"message": "The greeting is spelt right, and the test passes."}))
		r.Reasoning = "All is done."
		return r
	}
	return llmtest.Reply{Text: fmt.Sprintf("I do not know how to go on: %q", got)}
}

// A task from its first message to its end, in each format in which models are
// spoken to: the log, the stream and the workspace tell the same story.
func TestTaskOverEachWire(t *testing.T) {
	t.Parallel()
	l := newLab(t, wireConfig)
	for name, c := range map[string]struct {
		wire  llmtest.Wire
		model string
		// sealed is how the wire calls what a model wants to see again of its thoughts.
		sealed string
		think  mind
	}{
		"chat":      {llmtest.Chat, "chat-1", "", mender},
		"responses": {llmtest.Responses, "answers-1", `"encrypted_content":"sealed:`, mender},
		"anthropic": {llmtest.Anthropic, "claude-test", `"signature":"`, mender},
		"gemini":    {llmtest.Gemini, "gemini-3-test", `"thoughtSignature":"`, mender},
		"text":      {llmtest.Chat, "plain-1", "", func(a llmtest.Asked) llmtest.Reply { return inText(mender(a)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.person(t, "user-"+name, nil, `"git_user_name":"Ada","git_user_email":"ada@example.org"`)
			l.mind(c.model, c.think)
			p.name = c.model
			config := l.model.Config(c.wire, c.model)
			if _, err := p.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some(config.Model), LLMAPIKey: api.Some(config.APIKey), LLMBaseURL: api.Some(config.BaseURL)}); err != nil {
				t.Fatal(err)
			}
			id := p.begin("")
			p.upload(id, broken)
			stream := p.task(id)
			log := p.events(id)
			sameStory(t, stream, log)
			p.mendedWorkspace(id, log)
			p.sentAsTheWireWants(c.wire, name == "text", c.sealed)
		})
	}
}

// upload puts files into the workspace.
func (p *person) upload(id string, files map[string]string) {
	p.t.Helper()
	var list []client.Upload
	for name, text := range files {
		list = append(list, client.Upload{Name: name, Data: strings.NewReader(text)})
	}
	up, err := p.client.Upload(p.t.Context(), id, "", list...)
	if err != nil || len(up.UploadedFiles) != len(files) {
		p.t.Fatalf("%+v %v", up, err)
	}
}

// task has the repository made and mended, and gives what the stream said: from
// its beginning, with a new connection in the middle.
func (p *person) task(id string) []client.LegacyItem {
	p.t.Helper()
	p.ask(id, "Make a repository of these files.", "awaiting_user_input")
	if err := p.client.Say(p.t.Context(), id, "The test fails. Mend it.", ""); err != nil {
		p.t.Fatal(err)
	}
	edited := func(it client.LegacyItem) bool { return it.Event != nil && it.Event.Observation == "edit" }
	first := p.stream(id, 0, edited)
	return append(first, p.stream(id, first[len(first)-1].ID, agentIs("finished"))...)
}

// stream reads one connection until ok; it gives events and deltas.
func (p *person) stream(id string, after int64, ok func(client.LegacyItem) bool) []client.LegacyItem {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	var out, all []client.LegacyItem
	for it, err := range p.client.FollowLegacy(ctx, id, after) {
		if err != nil {
			p.t.Fatalf("%v; so far:\n%s", err, describe(all))
		}
		all = append(all, it)
		if it.Event != nil {
			out = append(out, it)
		}
		if ok(it) {
			return out
		}
		if lost := it.Event != nil && strings.HasPrefix(it.Event.Message, "I do not know how to go on"); lost || agentIs("error")(it) {
			break
		}
	}
	p.t.Fatalf("it ended another way:\n%s", describe(all))
	return nil
}

// sameStory compares what was streamed with what is stored, byte for byte, and
// both with what the agent was to do.
func sameStory(t *testing.T, stream, log []client.LegacyItem) {
	t.Helper()
	same := slices.EqualFunc(stream, log, func(a, b client.LegacyItem) bool { return a.ID == b.ID && string(a.Raw) == string(b.Raw) })
	if !same || !inOrder(log) {
		t.Errorf("the stream\n%s\nand the log\n%s\ndiffer", describe(stream), describe(log))
	}
	const want = "call_tool_mcp =mcp run =run edit =edit run =run finish"
	if !strings.HasSuffix(kinds(log), want) {
		t.Errorf("what was done is %q, want %q", kinds(log), want)
	}
	var open []int64
	for _, it := range log { // every call has its result, right behind it
		switch e := it.Event; {
		case e.Source == "agent" && (e.Action == "run" || e.Action == "edit" || e.Action == "call_tool_mcp"):
			open = append(open, e.ID)
		case e.Cause != 0 && slices.Contains(open, e.Cause):
			open = slices.DeleteFunc(open, func(id int64) bool { return id == e.Cause })
		}
	}
	if len(open) > 0 {
		t.Errorf("the calls %v have no result:\n%s", open, describe(log))
	}
	if text := describe(log); !strings.Contains(text, `"thought":"I look for the word and run the test."`) || !strings.Contains(text, "by Ada <ada@example.org>") {
		t.Errorf("%s", text)
	}
}

// mendedWorkspace compares the log with the files.
func (p *person) mendedWorkspace(id string, log []client.LegacyItem) {
	t := p.t
	t.Helper()
	ctx := t.Context()
	now, err := p.client.ReadFile(ctx, id, "greet.sh")
	if err != nil || now != mended {
		t.Errorf("greet.sh is %q, %v", now, err)
	}
	for _, it := range log {
		if it.Event.Observation != "edit" {
			continue
		}
		var extras struct {
			Path string `json:"path"`
			Old  string `json:"old_content"`
			New  string `json:"new_content"`
			Diff string `json:"diff"`
		}
		if err := json.Unmarshal(it.Event.Extras, &extras); err != nil || extras.New != now || extras.Old != broken["greet.sh"] || extras.Path != p.lab.workspace(id)+"/greet.sh" {
			t.Errorf("the log says of the edit: %+v, %v", extras, err)
		}
	}
	diff, err := p.client.Diff(ctx, id, "greet.sh")
	if err != nil || diff.Modified == nil || *diff.Modified != now || diff.Original == nil || *diff.Original != broken["greet.sh"] {
		t.Errorf("git says %+v, %v", diff, err)
	}
	changes, err := p.client.Changes(ctx, id)
	if err != nil || len(changes) != 1 || changes[0] != (api.GitChange{Status: "M", Path: "greet.sh"}) {
		t.Errorf("git says %+v, %v", changes, err)
	}
	got, err := p.client.Conversation(ctx, id)
	if err != nil || got.AgentState != "finished" || got.Status != "RUNNING" {
		t.Errorf("%+v, %v", got, err)
	}
}

// sentAsTheWireWants looks at the requests: tools and thoughts are where the
// wire has them, and each request continues the one before.
func (p *person) sentAsTheWireWants(wire llmtest.Wire, text bool, sealed string) {
	t := p.t
	t.Helper()
	all := p.requests()
	if len(all) != 6 {
		t.Fatalf("the model was asked %d times", len(all))
	}
	for i, a := range all {
		if a.Wire != wire || text != (len(a.Tools) == 0) || text != strings.Contains(a.System, "<call tool=") {
			t.Errorf("request %d is over %s with the tools %v", i, a.Wire, a.Tools)
		}
		if i > 0 && len(a.Messages) <= len(all[i-1].Messages) {
			t.Errorf("request %d has no more messages than the one before", i)
		}
	}
	last := string(all[5].Body)
	if sealed != "" && strings.Count(strings.ReplaceAll(last, " ", ""), sealed) < 3 {
		t.Errorf("the thoughts of three answers do not come back as %s:\n%s", sealed, last)
	}
	if text {
		return
	}
	parallel := slices.ContainsFunc(all[5].Messages, func(m llm.Message) bool { return m.Role == llm.Assistant && len(m.Calls) == 2 })
	if !parallel {
		t.Errorf("the two calls of one answer are not shown as such: %+v", all[5].Messages)
	}
}
