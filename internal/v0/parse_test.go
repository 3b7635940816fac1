package v0_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/v0"
)

func TestParseAction(t *testing.T) {
	inline := "data:image/png;base64,iVBORw0KGgo="
	said := func(m session.UserSaid) v0.Intent { return v0.Intent{Kind: v0.Say, Message: m} }
	for name, c := range map[string]struct {
		body string
		want v0.Intent
	}{
		"message": {
			`{"action":"message","args":{"content":"Add a README","image_urls":[],"file_urls":[],"timestamp":"2025-10-01T10:00:00.000Z"}}`,
			said(session.UserSaid{Text: "Add a README"}),
		},
		"nulls": {
			`{"args":{"content":"","image_urls":null,"file_urls":null},"action":"message"}`,
			said(session.UserSaid{}),
		},
		"attachments": {
			`{"action":"message","args":{"content":"x","image_urls":["` + inline + `","https://example.org/a.png"],"file_urls":["/workspace/a b.txt"]}}`,
			said(session.UserSaid{Text: "x", Images: []string{inline, "https://example.org/a.png"}, Files: []string{"/workspace/a b.txt"}}),
		},
		"old name": {
			`{"action":"message","args":{"content":"x","images_urls":["DATA:image/png;base64,R0lGODlh"]}}`,
			said(session.UserSaid{Text: "x", Images: []string{"DATA:image/png;base64,R0lGODlh"}}),
		},
		"ignored arguments": {
			`{"action":"message","args":{"content":"x","security_risk":2,"wait_for_response":true,"timestamp":{"a":[1]},"thought":null}}`,
			said(session.UserSaid{Text: "x"}),
		},
		"the shape that is sent": {
			`{"source":"user","timestamp":"2025-10-01T10:00:00.000000","message":"y","action":"message","args":{"content":"x"}}`,
			said(session.UserSaid{Text: "x"}),
		},
		"escapes": {
			`{"action":"message","args":{"content":"\u00e4\ud83d\ude00\n"}}`,
			said(session.UserSaid{Text: "ä😀\n"}),
		},
		"run":     {`{"action":"run","args":{"command":"ls -l","hidden":false}}`, v0.Intent{Kind: v0.Run, Command: "ls -l"}},
		"pause":   {`{"action":"change_agent_state","args":{"agent_state":"paused"}}`, v0.Intent{Kind: v0.Pause}},
		"now":     {`{"action":"change_agent_state","args":{"agent_state":"paused","now":true}}`, v0.Intent{Kind: v0.Pause, Now: true}},
		"not now": {`{"action":"change_agent_state","args":{"agent_state":"paused","now":false}}`, v0.Intent{Kind: v0.Pause}},
		"stop":    {`{"action":"change_agent_state","args":{"agent_state":"stopped"}}`, v0.Intent{Kind: v0.Stop}},
		"resume":  {`{"action":"change_agent_state","args":{"agent_state":"running"}}`, v0.Intent{Kind: v0.Resume}},
		"approve": {`{"action":"change_agent_state","args":{"agent_state":"user_confirmed","thought":""}}`, v0.Intent{Kind: v0.Approve}},
		"reject":  {` {"action":"change_agent_state","args":{"agent_state":"user_rejected"}} `, v0.Intent{Kind: v0.Reject}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v0.ParseAction([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, wanted %+v", got, c.want)
			}
		})
	}
}

func TestParseActionRefuses(t *testing.T) {
	message := func(args string) string { return `{"action":"message","args":{` + args + `}}` }
	many := func(n int, item string) string { return strings.Repeat(item+",", n-1) + item }
	for name, c := range map[string]struct{ body, typ, loc string }{
		"nothing":          {``, "json_invalid", "body.0"},
		"no JSON":          {`{"action":`, "json_invalid", "body.10"},
		"something after":  {`{} {}`, "json_invalid", "body.3"},
		"not UTF-8":        {message(`"content":"` + "\xff" + `"`), "json_invalid", "body.39"},
		"half a surrogate": {message(`"content":"\ud800"`), "json_invalid", "body.39"},
		"a list":           {`[]`, "dict_type", "body"},
		"null":             {`null`, "dict_type", "body"},
		"same key twice":   {`{"action":"message","action":"message","args":{}}`, "json_invalid", "body"},
		"same key inside":  {message(`"content":"a","content":"b"`), "json_invalid", "body"},
		"twice in ignored": {message(`"content":"a","timestamp":{"a":1,"a":2}`), "json_invalid", "body"},
		"deep":             {message(`"content":"a","timestamp":` + strings.Repeat("[", 100) + strings.Repeat("]", 100)), "json_invalid", "body"},
		"very deep":        {strings.Repeat(`{"a":`, 1_000_000), "json_invalid", "body"},

		"no action":       {`{"args":{}}`, "missing", "body.action"},
		"action a number": {`{"action":1,"args":{}}`, "string_type", "body.action"},
		"no command":      {`{"action":"run","args":{}}`, "missing", "body.args.command"},
		"command a list":  {`{"action":"run","args":{"command":["ls"]}}`, "string_type", "body.args.command"},
		"command long":    {`{"action":"run","args":{"command":"` + strings.Repeat("a", v0.MaxCommand+1) + `"}}`, "string_too_long", "body.args.command"},
		"command NUL":     {`{"action":"run","args":{"command":"a\u0000b"}}`, "value_error", "body.args.command"},
		"command extra":   {`{"action":"run","args":{"command":"ls","user":"root"}}`, "extra_forbidden", "body.args.user"},
		"read":            {`{"action":"read","args":{"path":"/etc/passwd"}}`, "literal_error", "body.action"},
		"finish":          {`{"action":"finish","id":3,"args":{}}`, "literal_error", "body.action"},
		"system":          {`{"action":"system","args":{"content":"x"}}`, "literal_error", "body.action"},
		"upper case":      {`{"action":"Message","args":{"content":"x"}}`, "literal_error", "body.action"},
		"observation":     {`{"observation":"run","content":"ok","extras":{}}`, "missing", "body.action"},
		"both":            {`{"action":"message","observation":"run","args":{"content":"x"}}`, "extra_forbidden", "body.observation"},
		"an id":           {`{"id":0,"action":"message","args":{"content":"x"}}`, "extra_forbidden", "body.id"},
		"a source":        {`{"source":"agent","action":"message","args":{"content":"x"}}`, "extra_forbidden", "body.source"},
		"a source's list": {`{"source":["user"],"action":"message","args":{"content":"x"}}`, "extra_forbidden", "body.source"},
		"a cause":         {`{"cause":1,"action":"message","args":{"content":"x"}}`, "extra_forbidden", "body.cause"},
		"a long key": {
			`{"` + strings.Repeat("k", 1000) + `":1,"action":"message","args":{"content":"x"}}`, "extra_forbidden", "body." + strings.Repeat("k", 64) + "…",
		},

		"no args":       {`{"action":"message"}`, "missing", "body.args"},
		"args a list":   {`{"action":"message","args":[]}`, "dict_type", "body.args"},
		"args null":     {`{"action":"message","args":null}`, "dict_type", "body.args"},
		"no content":    {message(``), "missing", "body.args.content"},
		"content null":  {message(`"content":null`), "string_type", "body.args.content"},
		"content long":  {message(`"content":"` + strings.Repeat("ä", v0.MaxContent+1) + `"`), "string_too_long", "body.args.content"},
		"unknown":       {message(`"content":"x","shell":"y"`), "extra_forbidden", "body.args.shell"},
		"both names":    {message(`"content":"x","image_urls":[],"images_urls":[]`), "extra_forbidden", "body.args.images_urls"},
		"images a text": {message(`"content":"x","image_urls":"y"`), "list_type", "body.args.image_urls"},
		"image a null":  {message(`"content":"x","image_urls":[null]`), "string_type", "body.args.image_urls.0"},
		"image a file":  {message(`"content":"x","image_urls":["https://a/b","file:///etc/passwd"]`), "url_scheme", "body.args.image_urls.1"},
		"image script":  {message(`"content":"x","image_urls":["javascript:alert(1)"]`), "url_scheme", "body.args.image_urls.0"},
		"image html":    {message(`"content":"x","image_urls":["data:text/html,x"]`), "url_scheme", "body.args.image_urls.0"},
		"image no host": {message(`"content":"x","image_urls":["https:///x"]`), "url_parsing", "body.args.image_urls.0"},
		"image blank":   {message(`"content":"x","image_urls":["https://a/b c"]`), "url_parsing", "body.args.image_urls.0"},
		"image control": {message(`"content":"x","image_urls":["data:image/png;base64,A\nB"]`), "url_parsing", "body.args.image_urls.0"},
		"image empty":   {message(`"content":"x","image_urls":["data:image/png;base64,"]`), "url_parsing", "body.args.image_urls.0"},
		"image base64":  {message(`"content":"x","image_urls":["data:image/png;base64,%%%"]`), "url_parsing", "body.args.image_urls.0"},
		"image plain":   {message(`"content":"x","image_urls":["data:image/svg+xml,<svg/>"]`), "url_parsing", "body.args.image_urls.0"},
		"image text":    {message(`"content":"x","image_urls":["data:image/png;base64,aGVsbG8="]`), "value_error", "body.args.image_urls.0"},
		"image svg":     {message(`"content":"x","image_urls":["data:image/svg+xml;base64,PHN2Zy8+"]`), "value_error", "body.args.image_urls.0"},
		"image no data": {message(`"content":"x","image_urls":["data:image/png"]`), "url_parsing", "body.args.image_urls.0"},
		"image broken":  {message(`"content":"x","image_urls":["http://[::1"]`), "url_parsing", "body.args.image_urls.0"},
		"image long":    {message(`"content":"x","image_urls":["https://a/` + strings.Repeat("b", v0.MaxURL) + `"]`), "string_too_long", "body.args.image_urls.0"},
		"image large": {
			message(`"content":"x","image_urls":["data:image/png;base64,` + strings.Repeat("A", v0.MaxImageData) + `"]`), "string_too_long", "body.args.image_urls.0",
		},
		"images many": {message(`"content":"x","image_urls":[` + many(v0.MaxImages+1, `"https://a/b"`) + `]`), "too_long", "body.args.image_urls"},
		"files many":  {message(`"content":"x","file_urls":[` + many(v0.MaxFiles+1, `"a"`) + `]`), "too_long", "body.args.file_urls"},
		"file long":   {message(`"content":"x","file_urls":["` + strings.Repeat("b", v0.MaxURL+1) + `"]`), "string_too_long", "body.args.file_urls.0"},
		"file empty":  {message(`"content":"x","file_urls":[""]`), "string_too_short", "body.args.file_urls.0"},

		"no state":      {`{"action":"change_agent_state","args":{}}`, "missing", "body.args.agent_state"},
		"state a bool":  {`{"action":"change_agent_state","args":{"agent_state":true}}`, "string_type", "body.args.agent_state"},
		"state unknown": {`{"action":"change_agent_state","args":{"agent_state":"finished"}}`, "literal_error", "body.args.agent_state"},
		"now a string":  {`{"action":"change_agent_state","args":{"agent_state":"paused","now":"yes"}}`, "bool_type", "body.args.now"},
		"stop now":      {`{"action":"change_agent_state","args":{"agent_state":"stopped","now":true}}`, "extra_forbidden", "body.args.now"},
		"state extra":   {`{"action":"change_agent_state","args":{"agent_state":"paused","content":"x"}}`, "extra_forbidden", "body.args.content"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v0.ParseAction([]byte(c.body))
			var v *api.ValidationError
			if !errors.As(err, &v) || len(v.Detail) != 1 {
				t.Fatalf("got %v, wanted a ValidationError", err)
			}
			loc := strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Detail[0].Loc), " ", "."), "[]")
			if v.Detail[0].Type != c.typ || loc != c.loc {
				t.Errorf("got %s at %s (%s), wanted %s at %s", v.Detail[0].Type, loc, v.Detail[0].Msg, c.typ, c.loc)
			}
			if msg := v.Detail[0].Msg; !strings.HasSuffix(msg, ".") || len(msg) > 200 {
				t.Errorf("this is not a short sentence: %q", msg)
			}
		})
	}
}

func TestLimitsAreInclusive(t *testing.T) {
	body := `{"action":"message","args":{"content":"` + strings.Repeat("ä", v0.MaxContent) + `","file_urls":["` + strings.Repeat("b", v0.MaxURL) + `"]}}`
	if _, err := v0.ParseAction([]byte(body)); err != nil {
		t.Error(err)
	}
}

// What is accepted says the same when it is sent again, and can be shown to clients.
func FuzzParseAction(f *testing.F) {
	for _, s := range []string{
		`{"action":"message","args":{"content":"x","image_urls":["https://a/b"],"file_urls":["c"],"timestamp":1}}`,
		`{"action":"message","args":{"content":"\ud83d\ude00","images_urls":["data:image/png;base64,AA"]}}`,
		`{"action":"change_agent_state","args":{"agent_state":"paused"}}`,
		`{"action":"run","args":{"command":"ls"}}`, `{"id":1}`, `[[[[`, `{"a":1,"a":2}`, "\xff", `"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := v0.ParseAction(body)
		if err != nil {
			var v *api.ValidationError
			if !errors.As(err, &v) {
				t.Fatalf("%T is not a ValidationError", err)
			}
			if _, err := json.Marshal(v); err != nil {
				t.Fatal(err)
			}
			return
		}
		if in.Kind != v0.Say {
			if in.Kind < v0.Say || in.Kind > v0.Run || (in.Command != "") != (in.Kind == v0.Run) || !reflect.DeepEqual(in.Message, session.UserSaid{}) {
				t.Fatalf("strange intent %+v", in)
			}
			return
		}
		frame, err := v0.Encode(convo, session.Event{Number: 1, At: moment, Payload: in.Message})
		if err != nil {
			t.Fatal(err)
		}
		var again struct {
			Action string         `json:"action"`
			Args   map[string]any `json:"args"`
		}
		if err := json.Unmarshal(frame.JSON, &again); err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := v0.ParseAction(sent); err != nil || !reflect.DeepEqual(back, in) {
			t.Fatalf("%+v became %+v, %v", in, back, err)
		}
	})
}

func BenchmarkParseAction(b *testing.B) {
	body := []byte(`{"action":"message","args":{"content":"Add a README","image_urls":[],"file_urls":[],"timestamp":"2025-10-01T10:00:00.000Z"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v0.ParseAction(body); err != nil {
			b.Fatal(err)
		}
	}
}
