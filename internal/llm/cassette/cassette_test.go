package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/scripted"
)

// answers is a model that gives these in turn.
type answers struct {
	turns [][]llm.Part
	err   error
}

func (a *answers) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		if len(a.turns) == 0 {
			if a.err == nil {
				<-ctx.Done()
				yield(llm.Part{}, ctx.Err())
				return
			}
			yield(llm.Part{}, a.err)
			return
		}
		parts := a.turns[0]
		a.turns = a.turns[1:]
		for _, p := range parts {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func collect(m llm.Model, req llm.Request) (parts []llm.Part, err error) {
	for p, err := range m.Stream(context.Background(), req) {
		if err != nil {
			return parts, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// conversation is three requests that grow, as they are on a day and in a folder.
func conversation(day, folder, id, key string) []llm.Request {
	first := llm.Request{Model: "anthropic/x", System: "You work in " + folder + ". Today is " + day + ".", Conversation: "c1",
		Tools: []llm.Tool{{Name: "bash", Description: "Runs <things> & more", Schema: json.RawMessage(`{"type": "object", "b": 1, "a": "<"}`)}}}
	first.Messages = []llm.Message{{Role: llm.User, Text: "List " + folder + " with " + key, Images: []string{"data:image/png;base64,AAAA"}}}
	second := first
	second.Messages = append(second.Messages[:1:1],
		llm.Message{Role: llm.Assistant, Text: "I look.", Calls: []llm.Call{{ID: id, Name: "bash", Args: json.RawMessage(`{"command": "ls <x> ` + folder + `"}`)}}, Raw: json.RawMessage(`{"from":"x"}`)},
		llm.Message{Role: llm.ToolResult, Call: id, Name: "bash", Text: "a.txt\nbad \xff byte\ntook 1.5 ms", Failed: true})
	third := second
	third.Messages = append(third.Messages[:3:3], llm.Message{Role: llm.Assistant, Text: "One file."}, llm.Message{Role: llm.User, Text: "Thanks"})
	third.Tools = nil
	return []llm.Request{first, second, third}
}

var told = [][]llm.Part{
	{{Reasoning: "Hm"}, {Text: "I "}, {Text: "look."}, {Call: &llm.Call{ID: "call_a", Name: "bash", Args: json.RawMessage(`{"command":"ls <x>"}`)}},
		{Done: &llm.Done{Usage: llm.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 4, Window: 1000}, Raw: json.RawMessage(`{"from":"x","signature":"s<"}`)}}},
	{{Text: "One file."}, {Done: &llm.Done{Cut: true}}},
	{{Text: "Bye."}, {Done: &llm.Done{}}},
}

func record(t *testing.T, m llm.Model, redact func(string) string, reqs []llm.Request) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	r := Record(m, &file, redact)
	for i, req := range reqs {
		if got, err := collect(r, req); err != nil || !reflect.DeepEqual(got, told[i]) {
			t.Fatalf("recording changed answer %d: %+v, %v", i, got, err)
		}
	}
	return &file
}

func hideKey(s string) string { return strings.ReplaceAll(s, "sk-secret", "**********") }

// The same conversation on another day, in another folder, with other ids, is the same conversation.
func TestPlayedAgain(t *testing.T) {
	file := record(t, &answers{turns: told}, hideKey, conversation("2026-01-02", "/tmp/box-1/w", "call_a", "sk-secret"))
	if n := strings.Count(file.String(), "\n"); n != 3 {
		t.Fatalf("%d lines", n)
	}
	if strings.Contains(file.String(), "sk-secret") {
		t.Fatalf("a secret is in the file: %s", file)
	}
	if strings.Count(file.String(), "You work in") != 1 || strings.Count(file.String(), "List ") != 1 {
		t.Errorf("what did not change is written again: %s", file)
	}
	m, err := Replay(file, hideKey)
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range conversation("2027-11-12 13:14:15", "/tmp/other", "toolu_9", "sk-secret") {
		got, err := collect(m, req)
		if err != nil || !reflect.DeepEqual(got, told[i]) {
			t.Errorf("answer %d: %+v, %v", i, got, err)
		}
	}
	var e *llm.Error
	if _, err := collect(m, conversation("", "", "", "")[0]); !errors.As(err, &e) || e.Class != llm.ClassRequest || !strings.Contains(e.Message, "has ended") || e.Retry() {
		t.Errorf("after the end: %v", err)
	}
}

func TestTakenUpInTheMiddle(t *testing.T) {
	reqs := conversation("2026-01-02", "/tmp/a", "call_a", "")
	m, err := Replay(record(t, &answers{turns: told}, nil, reqs), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := collect(m, reqs[1]); err != nil || !reflect.DeepEqual(got, told[1]) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := collect(m, reqs[1]); err == nil || !strings.Contains(err.Error(), "call 3") {
		t.Errorf("once begun, the order counts: %v", err)
	}
	if got, err := collect(m, reqs[2]); err != nil || !reflect.DeepEqual(got, told[2]) {
		t.Errorf("a wrong request must not use up an answer: %+v, %v", got, err)
	}
}

func TestDifferences(t *testing.T) {
	file := record(t, &answers{turns: told}, nil, conversation("2026-01-02", "/tmp/a", "call_a", "")).String()
	for name, c := range map[string]struct {
		change func(*llm.Request)
		want   []string
	}{
		"system":      {func(r *llm.Request) { r.System = "You are in the garden." }, []string{"system prompt", "You work", "the garden"}},
		"less tools":  {func(r *llm.Request) { r.Tools = nil }, []string{"tool bash is missing"}},
		"more tools":  {func(r *llm.Request) { r.Tools = append(r.Tools, llm.Tool{Name: "think"}) }, []string{"tool think is new"}},
		"other tool":  {func(r *llm.Request) { r.Tools[0].Schema = json.RawMessage(`{"a":"<","b":2,"type":"object"}`) }, []string{"tool 1 differs", "2"}},
		"text":        {func(r *llm.Request) { r.Messages[0].Text = "List nothing" }, []string{"message 1 differs", "nothing"}},
		"image":       {func(r *llm.Request) { r.Messages[0].Images = nil }, []string{"message 1 differs", "sha256"}},
		"one more":    {func(r *llm.Request) { r.Messages = append(r.Messages, llm.Message{Role: llm.User, Text: "More"}) }, []string{"message 2 is new", "More"}},
		"one missing": {func(r *llm.Request) { r.Messages = nil }, []string{"message 1 is missing", "List"}},
	} {
		m, err := Replay(strings.NewReader(file), nil)
		if err != nil {
			t.Fatal(err)
		}
		req := conversation("2026-01-02", "/tmp/a", "call_a", "")[0]
		c.change(&req)
		_, err = collect(m, req)
		for _, want := range append(c.want, "call 1 is not what was recorded") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"at 2026-01-02T03:04:05.6Z":                   "at <time>",
		"on 2026-01-02, 11:22:33":                     "on <time>, <time>",
		"id 123e4567-e89b-12d3-a456-426614174000 end": "id <id> end",
		"commit 0123456789abcdef0123456789abcdef0123": "commit <id>",
		"short abc123 stays":                          "short abc123 stays",
		"in /tmp/x-1/y.txt and /workspace/y.txt":      "in <path> and /workspace/y.txt",
		"http://127.0.0.1:4321/x":                     "http://<address>/x",
		"took 1.25s or 30 ms, 5 files":                "took <duration> or <duration>, 5 files",
		"12 and 3.4 stay":                             "12 and 3.4 stay",
	} {
		if got := Normal(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestFailuresArePlayed(t *testing.T) {
	req := conversation("", "", "", "")[0]
	for _, want := range []error{
		&llm.Error{Class: llm.ClassRate, Message: "slow down, sk-secret", RetryAfter: 3 * time.Second, Began: true},
		errors.New("out of order"),
	} {
		var file bytes.Buffer
		if _, err := collect(Record(&answers{err: want}, &file, nil), req); !errors.Is(err, want) {
			t.Fatalf("recording changed the error: %v", err)
		}
		m, err := Replay(&file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collect(m, req); err == nil || err.Error() != want.Error() || reflect.TypeOf(err) != reflect.TypeOf(want) {
			t.Errorf("%v, want %v", err, want)
		} else if e, ok := err.(*llm.Error); ok && *e != *want.(*llm.Error) {
			t.Errorf("%+v", e)
		}
	}
}

// A call that was stopped waits to be stopped again.
func TestStoppedCalls(t *testing.T) {
	req := conversation("", "", "", "")[0]
	var file bytes.Buffer
	for range Record(&answers{turns: [][]llm.Part{{{Text: "a"}, {Text: "b"}, {Done: &llm.Done{}}}}}, &file, nil).Stream(context.Background(), req) {
		break
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range Record(&answers{}, &file, nil).Stream(ctx, req) {
	}
	if n := strings.Count(file.String(), `"stopped":true`); n != 2 {
		t.Fatalf("%s", &file)
	}
	m, err := Replay(&file, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	var text string
	for p, err := range m.Stream(ctx, req) {
		text += p.Text
		if text == "a" && err == nil {
			cancel()
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if text != "a" {
		t.Errorf("%q", text)
	}
}

// A secret that the provider cut in two is hidden all the same.
func TestSecretsInFragments(t *testing.T) {
	var file bytes.Buffer
	m := Record(&answers{turns: [][]llm.Part{{{Text: "the key sk-se"}, {Text: "cret is"}, {Text: " yours"},
		{Call: &llm.Call{ID: "1", Name: "bash", Args: json.RawMessage(`{"command":"echo sk-secret"}`)}},
		{Done: &llm.Done{Raw: json.RawMessage(`{"from":"x","text":"sk-secret"}`)}}}}}, &file, hideKey)
	got, err := collect(m, llm.Request{})
	if err != nil || got[0].Text != "the key sk-se" {
		t.Fatalf("who listens must get what came: %+v, %v", got, err)
	}
	if strings.Contains(file.String(), "cret") || !strings.Contains(file.String(), "the key ********** is yours") {
		t.Errorf("%s", &file)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRecordingThatCannotBeWritten(t *testing.T) {
	parts, err := collect(Record(&answers{turns: told}, fullDisk{}, nil), llm.Request{})
	if err == nil || !strings.Contains(err.Error(), "could not be recorded") {
		t.Errorf("%+v, %v", parts, err)
	}
}

func TestDir(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "tapes"))
	say := func(conversation, text string) llm.Request {
		return llm.Request{Conversation: conversation, Messages: []llm.Message{{Role: llm.User, Text: text}}}
	}
	both := d.Record(scripted.New(scripted.Demo), nil)
	var want []llm.Part
	for _, req := range []llm.Request{say("one", "a"), say("two", "b"), say("one", "c")} {
		parts, err := collect(both, req)
		if err != nil {
			t.Fatal(err)
		}
		want = parts
	}
	// A server that starts again adds to the file.
	withSystem := say("one", "d")
	withSystem.System = "Be brief."
	for _, req := range []llm.Request{withSystem, say("one", "e")} {
		if _, err := collect(d.Record(scripted.New(scripted.Demo), nil), req); err != nil {
			t.Fatal(err)
		}
	}
	m, err := d.Open("one", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, req := range []llm.Request{say("x", "a"), say("x", "c"), withSystem, say("x", "e")} {
		got, err := collect(m, req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if i == 1 && !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
	if info, err := os.Stat(filepath.Join(string(d), "one.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var gone *llm.UnavailableError
	for _, name := range []string{"three", "../one", "a/b", ".one", "", strings.Repeat("x", 200)} {
		if _, err := d.Open(name, nil); !errors.As(err, &gone) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Dir("").Open("one", nil); !errors.As(err, &gone) || !strings.Contains(err.Error(), "--cassettes") {
		t.Errorf("%v", err)
	}
	if _, err := collect(both, say("../evil", "x")); err == nil {
		t.Error("a conversation wrote outside of the folder")
	}
}

const goodLine = `{"v":1,"system":"s","messages":[{"role":"user","text":"hi"}],"parts":[{"text":"a"},{"done":{}}]}`

func TestMistakesInFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "empty",
		"\n\n":                                   "empty",
		"{":                                      "line 1",
		goodLine + "\n{}":                        "line 2",
		goodLine + "x":                           "line 1",
		`{"v":2,"parts":[{"done":{}}]}`:          "version 2",
		`{"v":1,"parst":[]}`:                     "parst",
		`{"v":1,"keep":1,"parts":[{"done":{}}]}`: "a line is missing",
		`{"v":1,"keep":-1,"parts":[{"done":{}}]}`:                        "a line is missing",
		`{"v":1,"parts":[{"text":"a"}]}`:                                 "one end",
		`{"v":1}`:                                                        "one end",
		`{"v":1,"parts":[{"done":{}}],"error":{"message":"x"}}`:          "one end",
		`{"v":1,"parts":[{"done":{}},{"text":"a"}]}`:                     "after its end",
		`{"v":1,"digest":"0000","parts":[{"done":{}}]}`:                  "changed since",
		strings.Replace(goodLine, `"v":1,`, `"v":1,"digest":"1234",`, 1): "take out its digest",
	} {
		if _, err := Replay(strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	m, err := Replay(strings.NewReader(goodLine), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(m, llm.Request{System: "s", Messages: []llm.Message{{Role: llm.User, Text: "hi"}}})
	if err != nil || len(got) != 2 || got[0].Text != "a" {
		t.Errorf("written by hand: %+v, %v", got, err)
	}
}

// What can be read can be played, and what is recorded can be read.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Add([]byte(goodLine + "\n" + `{"v":1,"keep":1,"tools":[{"name":"t","schema":"{}"}],"messages":[{"role":"assistant","calls":[{"id":"1","name":"t","args":{"a":1}}]},{"role":"tool","call":"1"}],"stopped":true}`))
	f.Add([]byte(`{"v":1,"parts":[{"reasoning":"r"}],"error":{"class":"rate","message":"m"}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := Replay(bytes.NewReader(file), nil)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p := m.(*player)
		for _, take := range p.takes {
			if d := difference(take.want, take.want); d != "" {
				t.Errorf("a request differs from itself: %s", d)
			}
		}
		for range m.Stream(ctx, llm.Request{System: "\xff", Messages: []llm.Message{{Text: "x"}}}) {
		}
	})
}

func FuzzRecorded(f *testing.F) {
	f.Add("system", "text <b> \xff 2026-01-02", `{"a":"<\u2028>"}`)
	f.Add("", "", "not json")
	f.Fuzz(func(t *testing.T, system, text, args string) {
		req := llm.Request{System: system, Tools: []llm.Tool{{Name: text, Schema: json.RawMessage(args)}},
			Messages: []llm.Message{{Role: llm.User, Text: text}, {Role: llm.Assistant, Calls: []llm.Call{{ID: text, Name: system, Args: json.RawMessage(args)}}}, {Role: llm.ToolResult, Call: text, Text: args}}}
		var file bytes.Buffer
		if _, err := collect(Record(&answers{turns: [][]llm.Part{{{Text: text}, {Done: &llm.Done{}}}}}, &file, nil), req); err != nil {
			t.Fatal(err)
		}
		m, err := Replay(bytes.NewReader(file.Bytes()), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, &file)
		}
		if _, err := collect(m, req); err != nil {
			t.Errorf("%v\n%s", err, &file)
		}
	})
}
