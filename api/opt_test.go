package api

import (
	"encoding/json"
	"reflect"
	"testing"
)

type optBox struct {
	Text Opt[string]   `json:"text,omitzero"`
	List Opt[[]string] `json:"list,omitzero"`
	N    Opt[int]      `json:"n,omitzero"`
}

// Omitted, null and a value survive a round trip as what they were.
func TestOptRoundTrip(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"text":null}`, `{"text":""}`, `{"text":"a"}`, `{"text":"ü\n\"\\"}`, `{"list":[]}`, `{"list":["a","b"],"n":0}`, `{"n":null}`,
	} {
		var box optBox
		if err := json.Unmarshal([]byte(text), &box); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(box)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		_ = json.Unmarshal([]byte(text), &want)
		_ = json.Unmarshal(b, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %s", text, b)
		}
	}
}

func TestOptRefusesOtherTypes(t *testing.T) {
	for _, text := range []string{`{"text":1}`, `{"text":{}}`, `{"n":"1"}`, `{"list":"a"}`} {
		if json.Unmarshal([]byte(text), &optBox{}) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// The short way to read a string gives what the long one does.
func FuzzOptString(f *testing.F) {
	for _, s := range []string{`"a"`, `""`, `"\u00e9"`, "\"\x01\"", `"a\"b"`, `"`, `"a"b"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) { // decoders call UnmarshalJSON with valid JSON only
			return
		}
		var short Opt[string]
		var long string
		shortErr, longErr := short.UnmarshalJSON(b), json.Unmarshal(b, &long)
		if (shortErr == nil) != (longErr == nil) || short.Value != long {
			t.Errorf("%q: %q (%v), want %q (%v)", b, short.Value, shortErr, long, longErr)
		}
	})
}

// Taking over a parsed object gives what decoding it does.
func TestPlainIsDecoding(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"initial_user_msg":"hi"}`, `{"initial_user_msg":null,"repository":"a/b","git_provider":"github"}`,
		`{"selected_branch":"m","replay_json":"[]","conversation_instructions":"x","conversation_id":"c"}`,
	} {
		var object map[string]any
		var want, got CreateConversation
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if !got.Plain(object) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{`{"image_urls":["a"]}`, `{"suggested_task":{}}`, `{"initial_user_msg":1}`, `{"what":"x"}`} {
		var object map[string]any
		_ = json.Unmarshal([]byte(text), &object)
		if (&CreateConversation{}).Plain(object) {
			t.Errorf("%s is taken for plain", text)
		}
	}
}

// Every field of the request that is a text can be taken over.
func TestPlainKnowsAllTexts(t *testing.T) {
	typ := reflect.TypeFor[CreateConversation]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := f.Tag.Get("json")[:len(f.Tag.Get("json"))-len(",omitzero")]
		text := f.Type == reflect.TypeFor[Opt[string]]()
		if (new(CreateConversation).text(name) != nil) != text {
			t.Errorf("%s", name)
		}
	}
}

// An answer written by hand is the one the encoder writes.
func TestResponseByHand(t *testing.T) {
	message, status := "it's <ok> \"now\"\n", "RUNNING"
	for _, r := range []ConversationResponse{
		{Status: "ok", ConversationID: "a-b_9", ConversationStatus: &status}, {Status: "ok", ConversationID: "x", Message: &message},
	} {
		b, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got ConversationResponse
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %v", b, err)
		}
	}
}
