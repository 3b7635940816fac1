package v0_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

var update = flag.Bool("update", false, "write what is encoded to testdata")

func TestEncode(t *testing.T) {
	var known []string
	for _, c := range allCases() {
		if c.want != v0.None {
			known = append(known, c.name+".json")
		}
		t.Run(c.name, func(t *testing.T) {
			got, err := v0.Encode(convo, c.event())
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != c.want {
				t.Fatalf("it became a frame of kind %v, wanted %v: %s", got.Kind, c.want, got.JSON)
			}
			if got.Kind == v0.None {
				if got.JSON != nil {
					t.Errorf("nothing is told, but there is JSON: %s", got.JSON)
				}
				return
			}
			if !json.Valid(got.JSON) || bytes.ContainsAny(got.JSON, "\r\n") {
				t.Errorf("this is not one line of JSON: %s", got.JSON)
			}
			golden(t, c.name+".json", append(got.JSON, '\n'))
		})
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(known, filepath.Base(f)) {
			t.Errorf("%s belongs to no case", f)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %swant %s(run with -update if the change is meant)", got, want)
	}
}

// A new kind of event needs a decision here before it can reach a client.
func TestEveryKindIsDecided(t *testing.T) {
	covered := map[session.Kind]bool{}
	for _, c := range allCases() {
		covered[c.give.Kind()] = true
	}
	for _, p := range session.Payloads() {
		if !covered[p.Kind()] {
			t.Errorf("no case shows what becomes of %s: decide in Encode and add one", p.Kind())
		}
		if _, err := v0.Encode(convo, session.Event{Number: 1, At: moment, Payload: p}); err != nil {
			t.Errorf("the empty %s: %v", p.Kind(), err)
		}
	}
}

type strange struct{}

func (strange) Kind() session.Kind { return "strange" }

func TestEncodeRefusesWhatIsNotDecided(t *testing.T) {
	for _, p := range []session.Payload{nil, strange{}} {
		f, err := v0.Encode(convo, session.Event{Number: 3, Payload: p})
		if err == nil || f.Kind != v0.None {
			t.Errorf("%T: got %v, %v; wanted an error", p, f.Kind, err)
		}
	}
}

func TestTimestampIsInUTC(t *testing.T) {
	e := session.Event{Number: 1, At: moment.In(time.FixedZone("x", 7200)), Payload: session.TurnBegan{}}
	f, err := v0.Encode(convo, e)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(f.JSON, []byte(`"timestamp":"2026-01-02T15:04:05.123456Z"`)) {
		t.Errorf("the timestamp is not in UTC: %s", f.JSON)
	}
}

// Whatever a model or a tool wrote, the frame is one line of JSON with our text in it.
func FuzzEncode(f *testing.F) {
	f.Add("execute_bash", `{"command":"ls"}`, "out\n", `{"exit_code":0}`)
	f.Add("str_replace_editor", `{"command":"view","view_range":[1`, "\xff", `[]`)
	f.Add("x", strings.Repeat("[", 20000), "", `{"result":"\ud800"}`)
	f.Add("task_tracker", `{"task_list":[1,null,{"id":{}}]}`, "", `{"task_list":{}}`)
	f.Add("x", "", "", `{"recall_type":"knowledge","custom_secrets_descriptions":{"A":1}}`)
	f.Add("browser", `{"code":1e999}`, "", `{"dom_object":[],"open_pages_urls":[null]}`)
	f.Fuzz(func(t *testing.T, name, args, output, details string) {
		for _, p := range []session.Payload{
			called(name, args), returned(name, args, output, details), ended(returned(name, args, output, details), session.FailedRun),
			session.Briefed{Prompt: output, Tools: json.RawMessage(args)},
			session.Recalled{Text: output, Items: []session.Knowledge{{Name: name, Content: output}}, Details: json.RawMessage(details)},
		} {
			fr, err := v0.Encode(convo, session.Event{Number: 1, At: moment, Payload: p})
			if err != nil {
				t.Fatal(err)
			}
			if fr.Kind != v0.None && (!json.Valid(fr.JSON) || bytes.ContainsAny(fr.JSON, "\r\n") || !strings.HasPrefix(string(fr.JSON), `{"id":1,`)) {
				t.Fatalf("%T is not one line of JSON: %q", p, fr.JSON)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat("Please add a README that explains how to build it.\n", 4)
	for _, c := range []oneCase{
		{name: "user_said", give: session.UserSaid{Text: text}},
		{name: "agent_message", give: session.ModelAnswered{Text: text, Final: true, Totals: totals}},
		{name: "state", give: session.TurnBegan{}},
		{name: "call_run", give: called("execute_bash", `{"command":"make test","security_risk":"LOW"}`)},
		{name: "result_run", give: returned("execute_bash", `{"command":"make test"}`, text, `{"exit_code":0,"working_dir":"/workspace"}`)},
	} {
		e := c.event()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v0.Encode(convo, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
