package native_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/native"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

var update = flag.Bool("update", false, "add new kinds and fields to testdata/fields.json")

// filled is a payload whose fields all have a value; every text is the given one.
func filled(p session.Payload, text string) session.Payload {
	v := reflect.New(reflect.TypeOf(p)).Elem()
	fill(v, text)
	return v.Interface().(session.Payload)
}

func fill(v reflect.Value, text string) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		raw, _ := json.Marshal(map[string]any{text: []string{text}}) // texts are always JSON
		v.SetBytes(raw)
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Uint8:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// event gives a payload a number and a time.
func event(p session.Payload) session.Event {
	return session.Event{Number: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Payload: p}
}

// schemaOf is the schema of a kind's payload; nil for a kind that stays on the server.
func schemaOf(t *testing.T, kind session.Kind) *huma.Schema {
	t.Helper()
	all := native.Schemas()
	ref, ok := all[native.SchemaName].Discriminator.Mapping[string(kind)]
	if !ok {
		return nil
	}
	s := all[strings.TrimPrefix(ref, "#/components/schemas/")]
	if s == nil || s.Description == "" {
		t.Fatalf("%s: the schema %s is missing or has no description", kind, ref)
	}
	return s.Properties["payload"]
}

// compare reports where a value has other fields than its schema.
func compare(t *testing.T, at string, s *huma.Schema, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if s.Properties == nil {
			return // any JSON
		}
		has, wants := slices.Sorted(maps.Keys(v)), slices.Sorted(maps.Keys(s.Properties))
		if strings.HasSuffix(at, ".display") { // it is what the tool declares, and an unknown tool declares nothing
			wants = slices.Sorted(slices.Values(s.Required))
		}
		if !slices.Equal(has, wants) {
			t.Errorf("%s has the fields %q, and its schema %q", at, has, wants)
			return
		}
		for name, x := range v {
			compare(t, at+"."+name, s.Properties[name], x)
		}
	case []any:
		for _, x := range v {
			if s.Type == huma.TypeArray && s.Items.Ref == "" {
				compare(t, at, s.Items, x)
			}
		}
	}
}

// Every kind is on the wire with exactly the fields of its schema, or stays on the server.
// What is read again is what was written.
func TestEveryKindHasASchema(t *testing.T) {
	t.Parallel()
	internal := []session.Kind{session.KindClaimed, session.KindDeleted}
	for _, p := range session.Payloads() {
		full := filled(p, "text")
		line, shown, err := native.Encode(event(full))
		if err != nil {
			t.Errorf("%s: %v; a new kind needs a line in kinds.go", p.Kind(), err)
			continue
		}
		schema := schemaOf(t, p.Kind())
		if shown == slices.Contains(internal, p.Kind()) || shown != (schema != nil) {
			t.Errorf("%s: shown is %v, and the schema is %v", p.Kind(), shown, schema)
		}
		if !shown {
			continue
		}
		var wire struct {
			api.Event
			Payload any `json:"payload"`
		}
		if err := json.Unmarshal(line, &wire); err != nil || wire.ID != 7 || wire.Kind != string(p.Kind()) || wire.Time != "2026-01-02T03:04:05.000006Z" {
			t.Errorf("%s: %s, %v", p.Kind(), line, err)
		}
		compare(t, string(p.Kind()), schema, wire.Payload)
		if p.Kind() == session.KindImported {
			continue // it is read as what it stands for
		}
		var again api.Event
		if err := json.Unmarshal(line, &again); err != nil {
			t.Fatal(err)
		}
		read, err := native.Read(again)
		if err != nil || len(read) != 1 {
			t.Errorf("%s: read as %v, %v", p.Kind(), read, err)
			continue
		}
		if line2, _, err := native.Encode(read[0]); err != nil || string(line2) != string(line) {
			t.Errorf("%s: %s was read as %s, %v", p.Kind(), line, line2, err)
		}
	}
}

// Calls and results, those of retired tools too, say how they are shown.
func TestDisplay(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		`execute_bash {"command":"ls"}`:                                            `{"content":"command","title":"","main":"command"}`,
		`execute_bash {"command":"y","is_input":"true"}`:                           `{"content":"command","title":"","main":"command","input":true}`,
		`execute_ipython_cell {"code":"1"}`:                                        `{"content":"code","title":"","main":"code"}`,
		`str_replace_editor {"command":"view","path":"/w/a"}`:                      `{"content":"file","title":"read /w/a","main":"","read_only":true,"file":{"path":"path","lines":"view_range"}}`,
		`str_replace_editor {"command":"create","path":"/w/a","file_text":"x"}`:    `{"content":"file","title":"write /w/a","main":"","file":{"path":"path","after":"file_text","creates":true}}`,
		`str_replace_editor {"command":"create","path":"/w/a","content":"x"}`:      `{"content":"file","title":"write /w/a","main":"","file":{"path":"path","after":"content","creates":true}}`,
		`str_replace_editor {"command":"str_replace","path":"/w/a","old_str":"x"}`: `{"content":"file","title":"edit /w/a","main":"","file":{"path":"path","before":"old_str","after":"new_str"}}`,
		`str_replace_editor {"command":"insert","path":"/w/a","old_str":"x"}`:      `{"content":"file","title":"edit /w/a","main":"","file":{"path":"path","after":"new_str"}}`,
		`str_replace_editor {"command":"undo_edit","path":"/w/a","new_str":"x"}`:   `{"content":"file","title":"undo the edit of /w/a","main":"","file":{"path":"path"}}`,
		`str_replace_editor `:                                                  `{"content":"file","title":"","main":"","file":{"path":"path"}}`,
		`edit_file {"path":"/w/a","content":"x"}`:                              `{"content":"file","title":"","main":"","file":{"path":"path","after":"content"}}`,
		`browser {"code":"noop()"}`:                                            `{"content":"page","title":"","main":"code","read_only":true}`,
		`reject {"outputs":{"reason":"Too dangerous."}}`:                       `{"content":"rejection","title":"Too dangerous.","main":"","read_only":true}`,
		`request_condensation {}`:                                              `{"content":"hidden","title":"","main":"","read_only":true}`,
		`harbour_save {"command":"create","path":"README.md","file_text":"x"}`: `{"content":"plain","title":"","main":""}`,
	} {
		name, args, _ := strings.Cut(call, " ")
		c := session.ToolCall{ID: "c", Name: name, Args: json.RawMessage(args)}
		for _, p := range []session.Payload{session.ToolCalled{ToolCall: c}, session.ToolReturned{ID: "c", Name: name, Args: c.Args}} {
			line, _, err := native.Encode(event(p))
			if err != nil || !strings.Contains(string(line), `"display":`+want) {
				t.Errorf("%s: %s, want %s, %v", call, line, want, err)
			}
		}
	}
}

// The document lists the contents that tools declare, and no others.
func TestContentsAreDocumented(t *testing.T) {
	t.Parallel()
	declared := []string{string(tool.Plain)}
	for _, d := range tool.All() {
		if d.Display.Content != "" {
			declared = append(declared, string(d.Display.Content))
		}
	}
	slices.Sort(declared)
	declared = slices.Compact(declared)
	var listed []string
	for _, v := range schemaOf(t, session.KindToolCalled).Properties["display"].Properties["content"].Enum {
		listed = append(listed, v.(string))
	}
	if slices.Sort(listed); !slices.Equal(listed, declared) {
		t.Errorf("api.Display lists %q, and tools declare %q", listed, declared)
	}
}

// Encoding changes nothing in the payload: it is shared with other readers.
func TestEncodeLeavesThePayload(t *testing.T) {
	t.Parallel()
	p := filled(session.Created{}, "text").(session.Created)
	line, _, err := native.Encode(event(p))
	if err != nil || p.Then.Key != "text" || len(p.MCP) == 0 || p.Replay != "text" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, private := range []string{`"mcp"`, `"replay"`, `"fingerprint"`, `"key"`, `"address"`} {
		if strings.Contains(string(line), private) {
			t.Errorf("%s is in %s", private, line)
		}
	}
}

// flatten lists the fields of a schema with their types.
func flatten(s *huma.Schema, path string, out map[string]string) {
	typ := s.Type
	if s.Ref != "" {
		typ = filepath.Base(s.Ref)
	}
	if s.Type == huma.TypeArray {
		flatten(s.Items, path+"[]", out)
	}
	for name, p := range s.Properties {
		flatten(p, strings.TrimPrefix(path+"."+name, "."), out)
		if !slices.Contains(s.Required, name) {
			out[strings.TrimPrefix(path+"."+name, ".")] += " optional"
		}
	}
	if path != "" {
		out[path] = strings.TrimSpace(typ + " " + strings.TrimSpace(out[path]))
	}
	for _, v := range s.Enum {
		out[path+"="+reflect.ValueOf(v).String()] = "value"
	}
}

// The format is only extended: what testdata/fields.json has of a kind stays. An
// optional field may become one that is always there, and no other type.
func TestFormatIsOnlyExtended(t *testing.T) {
	t.Parallel()
	now := map[string]map[string]string{}
	for kind := range native.Schemas()[native.SchemaName].Discriminator.Mapping {
		now[kind] = map[string]string{}
		flatten(schemaOf(t, session.Kind(kind)), "", now[kind])
	}
	path := filepath.Join("testdata", "fields.json")
	raw, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	was := map[string]map[string]string{}
	if err == nil {
		if err := json.Unmarshal(raw, &was); err != nil {
			t.Fatal(err)
		}
	}
	for kind, fields := range was {
		for field, typ := range fields {
			if now[kind][field] != typ && now[kind][field] != strings.TrimSuffix(typ, " optional") {
				t.Errorf("%s: the field %s was %q and is %q: add another field in place of a change", kind, field, typ, now[kind][field])
			}
		}
	}
	text, _ := json.MarshalIndent(now, "", " ") // texts are always JSON
	if *update && !t.Failed() {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !reflect.DeepEqual(was, now) {
		t.Error("the format has grown: write it down with go test ./internal/native -update")
	}
}

// leaves lists the paths at which a JSON value has the text, as a value or as a name.
func leaves(v any, path, text string, found map[string]bool) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, text) {
			found[path] = true
		}
	case []any:
		for _, x := range v {
			leaves(x, path, text, found)
		}
	case map[string]any:
		for name, x := range v {
			if strings.Contains(name, text) {
				found[path+" (name)"] = true
			}
			leaves(x, strings.TrimPrefix(path+"."+name, "."), text, found)
		}
	}
}

// A secret is masked in every field but those that programs go by.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const word = "hunter2-hunter2-hunter2"
	shape := secret.NewShape(native.Protocol(), native.FreeForm(), native.Coded())
	masker := secret.NewMasker(word)
	found := map[string]bool{}
	for _, p := range session.Payloads() {
		line, shown, err := native.Encode(event(filled(p, word)))
		if err != nil || !shown {
			continue
		}
		var v any
		if err := json.Unmarshal(masker.JSON(line, shape), &v); err != nil {
			t.Fatal(err)
		}
		leaves(v, "", word, found)
	}
	for _, raw := range []string{
		`{"source":"user","action":"message","args":{"content":"` + word + `"}}`,
		`{"source":"agent","action":"call_tool_mcp","args":{"name":"x","arguments":{"` + word + `":"` + word + `"},"thought":"` + word + `"}}`,
		`{"source":"agent","observation":"run","content":"` + word + `","extras":{"command":"` + word + `","metadata":{"exit_code":1,"suffix":"` + word + `"}}}`,
	} {
		line, _, err := native.Encode(event(session.Imported{Event: json.RawMessage(raw)}))
		if err != nil {
			t.Fatal(err)
		}
		if got := masker.JSON(line, shape); strings.Contains(string(got), word) || strings.Count(string(got), secret.Mask) < 2 {
			t.Errorf("%s", got)
		}
	}
	// These have names that the server or a legacy server chose.
	delete(found, "payload.tools (name)")
	delete(found, "payload.event (name)")
	for path := range found {
		if !slices.Contains(native.Protocol(), path) {
			t.Errorf("%s is not masked", path)
		}
	}
	if len(found) < 15 {
		t.Errorf("only %d fields are kept: %v", len(found), found)
	}
}

// An event of a legacy server is told as the events that say the same.
func TestImportedEventsAreReadAsNative(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"source":"user","action":"message","args":{"content":"Hi","image_urls":["https://x/a.png"]}}`:                                                 `user_said {"text":"Hi","images":["https://x/a.png"]}`,
		`{"source":"agent","action":"message","args":{"content":"Hello."}}`:                                                                             `model_answered {"call":"","text":"Hello.","usage":{},"totals":{}}`,
		`{"source":"user","action":"run","args":{"command":"ls"}}`:                                                                                      `command_typed {"command":"ls"}`,
		`{"source":"agent","action":"read","args":{"path":"/w/a","security_risk":0}}`:                                                                   `tool_called {"id":"","name":"str_replace_editor","args":{"command":"view","path":"/w/a","security_risk":0},"risk":0,"answer":0,"totals":{}}`,
		`{"source":"agent","observation":"run","content":"no","extras":{"command":"ls","metadata":{"exit_code":2}}}`:                                    `tool_returned {"id":"","name":"execute_bash","cause":3,"outcome":"failed","output":"no","details":{"exit_code":2},"args":{"command":"ls"}}`,
		`{"source":"agent","observation":"mcp","content":"{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\"}],\"isError\":true}"}`: `tool_returned {"id":"","name":"mcp","cause":3,"outcome":"failed","output":"one\n(image)","details":{"result":{"content":[{"type":"text","text":"one"},{"type":"image"}],"isError":true}}}`,
		`{"source":"agent","observation":"mcp","content":"plain","extras":{"name":"search","arguments":{"query":"x"}}}`:                                 `tool_returned {"id":"","name":"search","cause":3,"outcome":"ok","output":"plain","args":{"query":"x"}}`,
		`{"source":"agent","action":"call_tool_mcp","args":{"name":"search","arguments":{"query":"x"}}}`:                                                `tool_called {"id":"","name":"search","args":{"query":"x"},"risk":-1,"answer":0,"totals":{}}`,
		`{"source":"agent","observation":"read","content":"1","extras":{"path":"/w/a"}}`:                                                                `tool_returned {"id":"","name":"str_replace_editor","cause":3,"outcome":"ok","output":"1","details":{"path":"/w/a"},"args":{"command":"view","path":"/w/a"}}`,
		`{"source":"agent","action":"reject","args":{"outputs":{"reason":"No."}}}`:                                                                      `tool_called {"id":"","name":"reject","args":{"outputs":{"reason":"No."}},"risk":-1,"answer":0,"totals":{}}`,
		`{"source":"user","action":"change_agent_state","args":{"agent_state":"paused"}}`:                                                               ``,
		`{"source":"agent","action":"browse_interactive","args":{"browser_actions":"noop()"}}`:                                                          `tool_called {"id":"","name":"browser","args":{"code":"noop()"},"risk":-1,"answer":0,"totals":{}}`,
		`{"source":"user","action":"recall","args":{"query":"x"}}`:                                                                                      ``,
		`{"source":"environment","observation":"agent_state_changed","extras":{"agent_state":"error","reason":"No key."}}`:                              `turn_ended {"up_to":0,"state":"error","reason":"No key."}`,
		`{"source":"agent","action":"finish","args":{"final_thought":"Done."}}`:                                                                         `tool_called {"id":"","name":"finish","args":{"message":"Done."},"risk":-1,"answer":0,"totals":{}} tool_returned {"id":"","name":"finish","cause":0,"outcome":"ok","args":{"message":"Done."},"ends":true}`,
		`{"action":7}`: ``,
	} {
		line, _, err := native.Encode(event(session.Imported{Event: json.RawMessage(raw), Cause: 3}))
		if err != nil {
			t.Fatal(err)
		}
		var e api.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		read, err := native.Read(e)
		var got []string
		for _, one := range read {
			payload, _ := session.Encode(one.Payload)
			got = append(got, string(one.Payload.Kind())+" "+string(payload))
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%s is read as\n%s, want\n%s, %v", raw, strings.Join(got, " "), want, err)
		}
	}
}

// What a newer server says is passed over, and what is no event is an error.
func TestReadOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	const now = "2026-01-02T03:04:05.000006Z"
	if got, err := native.Read(api.Event{ID: 1, Kind: "dreamt", Time: now, Payload: json.RawMessage(`{}`)}); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, e := range []api.Event{{Kind: "user_said", Time: "yesterday"}, {Kind: "user_said", Time: now, Payload: json.RawMessage(`{"text":1}`)}, {Kind: "imported", Time: now, Payload: json.RawMessage(`{"as":1}`)}} {
		if _, err := native.Read(e); err == nil {
			t.Errorf("%+v is an event", e)
		}
	}
}
