package v0_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// brief writes steps in a way that can be compared at a glance.
func brief(steps []v0.Recorded) []string {
	var out []string
	for _, s := range steps {
		line := "agent: " + s.Text
		if s.Said != nil {
			line = "user: " + s.Said.Text
		}
		for _, c := range s.Calls {
			line += " | " + c.Name + " " + string(c.Args)
		}
		if s.Ends {
			line += " | ends"
		}
		if len(s.Notes) > 0 {
			line += fmt.Sprintf(" | %d notes", len(s.Notes))
		}
		out = append(out, line)
	}
	return out
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The shapes of the four recordings that the legacy server was tested with.
func TestReplayShapes(t *testing.T) {
	for name, want := range map[string][]string{
		"edit_then_finish": {"user: Write a number game; do not run it.",
			`agent: I shall write the game. | str_replace_editor {"command":"create","path":"/workspace/game.py","file_text":"print('guess')\n"}`,
			`agent: The game is written. | finish {"message":"The game is written."} | ends`},
		"web_export": {"user: Make a page and serve it.",
			`agent: A folder first. | execute_bash {"command":"mkdir -p site"}`,
			`agent:  | str_replace_editor {"command":"create","path":"/workspace/site/index.html","file_text":"<h1>Hi</h1>"}`,
			`agent:  | str_replace_editor {"command":"str_replace","path":"/workspace/site/index.html","old_str":"Hi","new_str":"Hello"}`,
			`agent:  | execute_bash {"command":"cd site && python3 -m http.server 8000","timeout":10}`,
			`agent: The page is served. | ends`},
		"talk": {"user: What is 1+1?", "agent: 2 | ends", "user: And 2+2?", "agent: 4 | ends", "user: Thank you.", `agent:  | finish {"message":"Goodbye."} | ends`},
		"missing_file": {"user: Rename old.txt to new.txt.",
			`agent: Is it there? | str_replace_editor {"command":"view","path":"/workspace/old.txt","view_range":[1,5]}`,
			`agent:  | execute_bash {"command":"mv old.txt new.txt"}`,
			`agent:  | str_replace_editor {"command":"view","path":"/workspace/new.txt"}`,
			`agent:  | finish {"message":"Renamed."} | ends`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", "replay", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := v0.ParseReplay(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			same(t, brief(steps), want)
		})
	}
}

const hello = `{"id":1,"source":"user","action":"message","args":{"content":"hello"}}`

func TestReplayActions(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"notebook", `{"source":"agent","action":"run_ipython","args":{"code":"print('PYTHON')\n","thought":"t"}}`,
			`agent: t | execute_bash {"command":"python3 - <<'PYTHON0'\nprint('PYTHON')\nPYTHON0"}`},
		{"write", `{"source":"user","action":"write","args":{"path":"/a","content":"x"}}`, `agent:  | str_replace_editor {"command":"create","path":"/a","file_text":"x"}`},
		{"draft of a file", `{"source":"agent","action":"edit","args":{"path":"/a","content":"x","start":1,"end":-1}}`, `agent:  | str_replace_editor {"command":"create","path":"/a","file_text":"x"}`},
		{"insert", `{"source":"agent","action":"edit","args":{"path":"/a","command":"insert","insert_line":3,"new_str":"x"}}`, `agent:  | str_replace_editor {"command":"insert","path":"/a","new_str":"x","insert_line":3}`},
		{"browse", `{"source":"agent","action":"browse","args":{"url":"http://localhost:1"}}`, `agent:  | fetch {"url":"http://localhost:1"}`},
		{"browser", `{"source":"agent","action":"browse_interactive","args":{"browser_actions":"noop()"}}`, `agent:  | browser {"code":"noop()"}`},
		{"foreign", `{"source":"agent","action":"call_tool_mcp","args":{"name":"x-y","arguments":{"a":1}}}`, `agent:  | x-y {"a":1}`},
		{"think", `{"source":"agent","action":"think","args":{"thought":"hm"}}`, `agent:  | think {"thought":"hm"}`},
		{"tasks", `{"source":"agent","action":"task_tracking","args":{"command":"plan","task_list":[{"id":"1"}]}}`, `agent:  | task_tracker {"command":"plan","task_list":[{"id":"1"}]}`},
		{"input", `{"source":"agent","action":"run","args":{"command":"C-c","is_input":true}}`, `agent:  | execute_bash {"command":"C-c","is_input":"true"}`},
		{"rejects", `{"source":"agent","action":"reject","args":{"outputs":{},"thought":"no"}}`, `agent: no | ends`},
		{"goes on", `{"source":"agent","action":"message","args":{"content":"well","wait_for_response":true}},{"source":"agent","action":"think","args":{"thought":"x"}}`,
			"agent: well\n" + `agent:  | think {"thought":"x"}`},
		{"did not wait", `{"source":"agent","action":"message","args":{"content":"well","wait_for_response":false}}`, "agent: well"},
		{"rejected", `{"id":4,"source":"agent","action":"run","args":{"command":"rm x"}},{"cause":4,"source":"agent","observation":"user_rejected","content":"","extras":{}},` +
			`{"id":6,"source":"agent","action":"run","args":{"command":"ls","confirmation_state":"rejected"}},{"source":"agent","action":"run","args":{"command":"pwd"}}`,
			`agent:  | execute_bash {"command":"pwd"} | 2 notes`},
		{"left out", `{"source":"agent","action":"delegate","args":{"agent":"B","inputs":{}}},{"source":"agent","action":"edit","args":{"path":"/a","content":"x","start":4,"end":9}},{"source":"agent","action":"push","args":{}},` +
			`{"source":"agent","action":"run","args":{"command":"pwd"}}`, `agent:  | execute_bash {"command":"pwd"} | 3 notes`},
		{"hidden", `{"source":"agent","action":"run","args":{"command":"secret","hidden":true}},{"source":"agent","action":"run","args":{"command":"pwd"}}`, `agent:  | execute_bash {"command":"pwd"}`},
		{"another thing than it shows", `{"source":"agent","action":"run","args":{"command":"ls"},"tool_call_metadata":{"function_name":"execute_bash","tool_call_id":"c1","total_calls_in_response":1,` +
			`"model_response":{"id":"r","choices":[{"message":{"content":"say","tool_calls":[{"id":"c1","function":{"name":"execute_bash","arguments":"{\"command\":\"rm -rf /\"}"}}]}}]}}}`, `agent: say | execute_bash {"command":"ls"}`},
		{"status", `{"status_update":true,"type":"info","id":"x","message":"y"},{"source":"agent","action":"run","args":{"command":"pwd"}}`, `agent:  | execute_bash {"command":"pwd"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps, err := v0.ParseReplay("[" + hello + "," + c.events + "]")
			if err != nil {
				t.Fatal(err)
			}
			same(t, brief(steps), append([]string{"user: hello"}, strings.Split(c.want, "\n")...))
		})
	}
}

func TestReplayErrors(t *testing.T) {
	for _, c := range []struct {
		name, raw, field string
		item             int
	}{
		{"nothing", ``, "", -1},
		{"not JSON", `[`, "", -1},
		{"not UTF-8", "[\"\xff\"]", "", -1},
		{"a string", `"x"`, "", -1},
		{"an object", `{"events":[]}`, "", -1},
		{"two values", `[] []`, "", -1},
		{"empty", `[]`, "", -1},
		{"only observations", `[{"observation":"null","content":""}]`, "", -1},
		{"a key twice", `[{"action":"run","action":"message"}]`, "", -1},
		{"too deep", strings.Repeat("[", 500) + strings.Repeat("]", 500), "", -1},
		{"too many", "[" + strings.Repeat("{},", v0.MaxReplayItems) + "{}]", "", -1},
		{"too large", `["` + strings.Repeat("x", v0.MaxReplay) + `"]`, "", -1},
		{"not an event", "[" + hello + ",7]", "", 1},
		{"neither", "[" + hello + ",{}]", "", 1},
		{"unknown action", "[" + hello + `,{"source":"agent","action":"frob","args":{}}]`, "action", 1},
		{"action of a wrong type", "[" + hello + `,{"source":"agent","action":7}]`, "action", 1},
		{"source of a wrong type", "[" + hello + `,{"source":{},"action":"run"}]`, "source", 1},
		{"args of a wrong type", "[" + hello + `,{"source":"agent","action":"run","args":[]}]`, "args", 1},
		{"no command", "[" + hello + `,{"source":"agent","action":"run","args":{}}]`, "args.command", 1},
		{"a command of a wrong type", "[" + hello + `,{"source":"agent","action":"run","args":{"command":["x"]}}]`, "args.command", 1},
		{"a timeout of a wrong type", "[" + hello + `,{"source":"agent","action":"run","args":{"command":"x"},"timeout":"soon"}]`, "timeout", 1},
		{"old_str of a wrong type", "[" + hello + `,{"source":"agent","action":"edit","args":{"path":"/a","command":"str_replace","old_str":1}}]`, "args.old_str", 1},
		{"a tool without a name", "[" + hello + `,{"source":"agent","action":"call_tool_mcp","args":{"name":"a b","arguments":{}}}]`, "args.name", 1},
		{"arguments of a wrong type", "[" + hello + `,{"source":"agent","action":"call_tool_mcp","args":{"name":"x","arguments":[]}}]`, "args.arguments", 1},
		{"a message of a wrong type", `[{"source":"user","action":"message","args":{"content":1}}]`, "args.content", 0},
		{"images of a wrong type", `[{"source":"user","action":"message","args":{"content":"x","image_urls":"y"}}]`, "args.image_urls", 0},
		{"a bad image", `[{"source":"user","action":"message","args":{"content":"x","image_urls":["javascript:x"]}}]`, "args.image_urls[0]", 0},
		{"no message first", `[{"source":"agent","action":"run","args":{"command":"x"}}]`, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := v0.ParseReplay(c.raw)
			var e *v0.ReplayError
			if !errors.As(err, &e) || e.Item != c.item || e.Field != c.field || !strings.HasSuffix(e.Error(), ".") {
				t.Errorf("%v", err)
			}
		})
	}
}

// export makes a trajectory of a log, as the API does.
func export(t testing.TB, log []session.Payload) string {
	t.Helper()
	var events []string
	for i, p := range log {
		b, err := v0.Export(convo, session.Event{Number: int64(i + 1), At: moment, Payload: p})
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			events = append(events, string(b))
		}
	}
	return `{"trajectory":[` + strings.Join(events, ",") + `]}`
}

// What is exported comes back as the same messages and calls.
func TestReplayRoundTrip(t *testing.T) {
	tools := []string{
		`execute_bash {"command":"make test","timeout":30,"security_risk":"LOW"}`, `execute_bash {"command":"y\n","is_input":"true"}`, `execute_bash {"command":7}`, `execute_bash "not JSON"`,
		`str_replace_editor {"command":"view","path":"/workspace/a","view_range":[1,2]}`, `str_replace_editor {"command":"str_replace","path":"/workspace/a","old_str":"x","new_str":""}`,
		`str_replace_editor {"command":"insert","path":"/workspace/a","insert_line":0,"new_str":"ü\u0000"}`, `think {"thought":"hm"}`, `browser {"code":"goto('http://localhost')"}`,
		`fetch {"url":"http://localhost","max_length":100}`, `task_tracker {"command":"plan","task_list":[{"id":"1","title":"t","status":"todo","notes":"n"}]}`,
		`grep {"pattern":"x","path":"/"}`, `their-tool {"a":{"b":[1,2.50,null]}}`, `delegate {"agent":"B","inputs":{"task":"x"}}`, `web_search {}`,
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		log := []session.Payload{session.Created{Owner: "ada"}, session.Briefed{Prompt: "You are …", Agent: "A"}}
		var want []string
		say := func() {
			m := session.UserSaid{Text: fmt.Sprintf("message %d \"\n", r.IntN(100))}
			log = append(log, m)
			want = append(want, "user: "+m.Text)
		}
		say()
		for range r.IntN(6) {
			text := ""
			if r.IntN(2) == 0 {
				text = "I shall."
			}
			line, n := "agent: "+text, 1+r.IntN(3)
			log = append(log, session.ModelAnswered{Text: text, ToolCalls: make([]session.ToolCall, n)})
			answer := int64(len(log))
			late := false
			for i := range n {
				name, args, _ := strings.Cut(tools[r.IntN(len(tools))], " ")
				c := session.ToolCalled{ToolCall: session.ToolCall{ID: fmt.Sprintf("call_%d_%d", answer, i), Name: name, Args: json.RawMessage(args)}, Answer: answer, InAnswer: n}
				if i == 0 {
					c.Thought = text
				}
				log = append(log, session.TurnBegan{}, c)
				log = append(log, session.ToolReturned{ID: c.ID, Name: name, Cause: int64(len(log)), Outcome: session.Succeeded, Output: "done", Args: c.Args})
				line += " | " + name + " " + args
				if i == 0 && n > 1 && r.IntN(4) == 0 { // a user speaks while the agent works
					log = append(log, session.UserSaid{Text: "wait"})
					late = true
				}
			}
			want = append(want, line)
			if late {
				want = append(want, "user: wait")
			}
			if r.IntN(3) == 0 {
				log = append(log, session.ModelAnswered{Text: "So?", Final: true})
				want = append(want, "agent: So? | ends")
				say()
			}
		}
		steps, err := v0.ParseReplay(export(t, log))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, brief(steps), want)
		for _, s := range steps {
			for _, c := range s.Calls {
				if !strings.HasPrefix(c.ID, "call_") {
					t.Errorf("seed %d: the id of a call became %q", seed, c.ID)
				}
			}
		}
	}
}

// A trajectory goes without what is bulky, and keeps everything else.
func TestExport(t *testing.T) {
	page := `{"url":"http://localhost/","screenshot":"data:image/png;base64,iVBO","set_of_marks":"data:x","dom_object":{"a":1},"axtree_object":{"b":2},"open_pages_urls":["http://localhost/"],"last_browser_action":"noop()"}`
	got := export(t, []session.Payload{
		session.Created{Owner: "ada"}, session.Claimed{By: "x"}, session.Titled{Title: "t"},
		returned("browser", `{"code":"noop()"}`, `text with "dom_object": in it`, page),
		returned("execute_bash", `{"command":"x"}`, `{"dom_object":1}`, `{"exit_code":0}`),
	})
	var out struct{ Trajectory []map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(got), &out); err != nil || len(out.Trajectory) != 3 {
		t.Fatalf("%v: %s", err, got)
	}
	var extras map[string]json.RawMessage
	if err := json.Unmarshal(out.Trajectory[1]["extras"], &extras); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"dom_object", "axtree_object", "active_page_index", "last_browser_action", "last_browser_action_error", "focused_element_bid", "extra_element_properties", "screenshot", "set_of_marks"} {
		if _, there := extras[gone]; there {
			t.Errorf("%s is still there", gone)
		}
	}
	if string(extras["url"]) != `"http://localhost/"` || string(out.Trajectory[1]["cause"]) != "12" || !strings.Contains(string(out.Trajectory[1]["content"]), `\"dom_object\"`) {
		t.Errorf("something else is gone too: %s", got)
	}
	if number, hidden := v0.HiddenCall(session.Event{Payload: returned("execute_bash", `{}`, "", `{"hidden":true}`)}); !hidden || number != 12 {
		t.Error("a hidden result is not recognised")
	}
	if _, hidden := v0.HiddenCall(session.Event{Payload: returned("execute_bash", `{}`, "", `{"exit_code":0}`)}); hidden {
		t.Error("a result is hidden that should not be")
	}
}

func FuzzParseReplay(f *testing.F) {
	files, err := filepath.Glob("testdata/replay/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(export(f, []session.Payload{session.UserSaid{Text: "x"}, called("execute_bash", `{"command":"ls"}`), called("browser", `x`)}))
	f.Fuzz(func(t *testing.T, raw string) {
		steps, err := v0.ParseReplay(raw)
		var e *v0.ReplayError
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			return
		}
		if len(steps) == 0 || steps[0].Said == nil {
			t.Fatal("it does not begin with a message")
		}
		for _, s := range steps {
			ids := map[string]bool{}
			for _, c := range s.Calls {
				if s.Said != nil || c.Name == "" || ids[c.ID] || !json.Valid(c.Args) {
					t.Fatalf("%+v", s)
				}
				ids[c.ID] = true
			}
		}
	})
}
