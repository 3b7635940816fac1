package tool_test

import (
	"encoding/json"
	"testing"

	"deckhand/internal/tool"
)

func TestInto(t *testing.T) {
	type item struct {
		Title string `json:"title"`
	}
	type args struct {
		Text  string   `json:"text"`
		Line  *int     `json:"line"`
		Wait  float64  `json:"wait"`
		All   bool     `json:"all"`
		Range []int    `json:"range"`
		Items []item   `json:"items"`
		Map   struct{} `json:"map"`
	}
	for in, want := range map[string]string{
		`{"text":"a","line":3,"wait":0.5,"all":true,"range":[1,2],"items":[{"title":"x"}],"other":1}`: "",
		`{"text":3}`:              "the argument text must be a string, not number",
		`{"line":"3"}`:            "the argument line must be a whole number, not string",
		`{"line":1.5}`:            "the argument line must be a whole number, not number 1.5",
		`{"wait":"1"}`:            "the argument wait must be a number, not string",
		`{"all":"yes"}`:           "the argument all must be true or false, not string",
		`{"range":7}`:             "the argument range must be a list, not number",
		`{"items":[{"title":1}]}`: "the argument items.title must be a string, not number",
		`{"map":[]}`:              "the argument map must be an object, not array",
		`[]`:                      "the arguments must be a JSON object",
		`{"text":`:                "the arguments are not valid JSON",
		``:                        "the arguments are not valid JSON",
	} {
		got := ""
		if err := (tool.Call{Args: json.RawMessage(in)}).Into(&args{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
