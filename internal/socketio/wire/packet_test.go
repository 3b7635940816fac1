package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

var limits = Limits{Attachments: 10, Bytes: 1 << 20}

// raw makes arguments.
func raw(args ...string) []json.RawMessage {
	out := []json.RawMessage{}
	for _, a := range args {
		out = append(out, json.RawMessage(a))
	}
	return out
}

func TestPackets(t *testing.T) {
	for text, want := range map[string]Packet{
		`0`:                            {Type: Connect, Namespace: "/"},
		`0{"token":"123"}`:             {Type: Connect, Namespace: "/", Data: json.RawMessage(`{"token":"123"}`)},
		`0/admin,`:                     {Type: Connect, Namespace: "/admin"},
		`0/admin,{"sid":"x"}`:          {Type: Connect, Namespace: "/admin", Data: json.RawMessage(`{"sid":"x"}`)},
		`1`:                            {Type: Disconnect, Namespace: "/"},
		`1/admin,`:                     {Type: Disconnect, Namespace: "/admin"},
		`2["foo"]`:                     {Type: Event, Namespace: "/", Name: "foo", Args: raw()},
		`2["foo",1,"2",{"3":[true]}]`:  {Type: Event, Namespace: "/", Name: "foo", Args: raw("1", `"2"`, `{"3":[true]}`)},
		`2/admin,["bar"]`:              {Type: Event, Namespace: "/admin", Name: "bar", Args: raw()},
		`20["foo"]`:                    {Type: Event, Namespace: "/", HasID: true, Name: "foo", Args: raw()},
		`212["foo",null]`:              {Type: Event, Namespace: "/", ID: 12, HasID: true, Name: "foo", Args: raw("null")},
		`29007199254740991["foo"]`:     {Type: Event, Namespace: "/", ID: maxID, HasID: true, Name: "foo", Args: raw()},
		`3/admin,13["bar"]`:            {Type: Ack, Namespace: "/admin", ID: 13, HasID: true, Args: raw(`"bar"`)},
		`30[]`:                         {Type: Ack, Namespace: "/", HasID: true, Args: raw()},
		`4{"message":"no"}`:            {Type: ConnectError, Namespace: "/", Data: json.RawMessage(`{"message":"no"}`)},
		`2["日本語","🚢"]`:                 {Type: Event, Namespace: "/", Name: "日本語", Args: raw(`"🚢"`)},
		`2["x","[[[\"]]}\\"]`:          {Type: Event, Namespace: "/", Name: "x", Args: raw(`"[[[\"]]}\\"`)},
		`2/a-b.c/d e,["x"]`:            {Type: Event, Namespace: "/a-b.c/d e", Name: "x", Args: raw()},
		`2["connected","disconnects"]`: {Type: Event, Namespace: "/", Name: "connected", Args: raw(`"disconnects"`)},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := NewReader(limits).Add([]byte(text), false)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("read %+v\nwanted %+v", *got, want)
			}
			if again := string(want.Text()); again != text {
				t.Errorf("written as %s", again)
			}
		})
	}
}

func TestOtherSpellings(t *testing.T) {
	for text, want := range map[string]string{
		`0/admin`:               `0/admin,`,
		`1/admin`:               `1/admin,`,
		`0/admin?token=1,{}`:    `0/admin,{}`, // the query is an older protocol's
		`0/?a=b,{}`:             `0{}`,
		`2/,["x"]`:              `2["x"]`,
		`50-["x"]`:              `2["x"]`,
		`60-7[1]`:               `37[1]`,
		`2 ["x"]`:               "",
		`2["x" , [ 1, 2 ] ]`:    `2["x",[ 1, 2 ]]`,
		`2007["x"]`:             `27["x"]`,
		`2["\u0063onnected",1]`: `2["connected",1]`,
	} {
		t.Run(text, func(t *testing.T) {
			p, err := NewReader(limits).Add([]byte(text), false)
			if err != nil {
				if want != "" {
					t.Fatal(err)
				}
				return
			}
			if got := string(p.Text()); got != want {
				t.Errorf("is %s, wanted %s", got, want)
			}
		})
	}
}

func TestGarbage(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                       ``,
		"no type":                       `abc`,
		"unknown type":                  `7`,
		"a type beyond":                 `9["x"]`,
		"no list":                       `2{}`,
		"no content":                    `2`,
		"an id that is none":            `2abc["x"]`,
		"a negative id":                 `2-1["x"]`,
		"an id too large":               `29007199254740992["x"]`,
		"an id far too large":           `2` + strings.Repeat("9", 400) + `["x"]`,
		"no name":                       `2[]`,
		"a name that is a number":       `2[1]`,
		"a name that is an object":      `2[{"connect":1}]`,
		"a name that is null":           `2[null]`,
		"broken JSON":                   `2["x"`,
		"more than JSON":                `2["x"]["y"]`,
		"a connect with a list":         `0[]`,
		"a connect with null":           `0null`,
		"a connect with a string":       `0"abc"`,
		"a disconnect with content":     `1{}`,
		"an ack without id":             `3[]`,
		"an ack without content":        `31`,
		"an ack with an object":         `31{}`,
		"an error with a list":          `4[]`,
		"no number of attachments":      `5["x"]`,
		"no dash":                       `51["x"]`,
		"a negative number":             `5-1-["x"]`,
		"too many attachments":          `511-["x"]`,
		"far too many attachments":      `599999999999999999999-["x"]`,
		"a fraction of attachments":     `51.5-["x"]`,
		"a namespace too long":          `0/` + strings.Repeat("n", maxNamespace) + `,`,
		"a namespace with a control":    "0/a\x1e4,",
		"a namespace with a line feed":  "0/a\n,",
		"not UTF-8":                     "2[\"x\",\"\xff\"]",
		"too deep":                      `2["x",` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `]`,
		"bottomless":                    `2["x",` + strings.Repeat("[", 1<<20),
		"bottomless objects":            `0` + strings.Repeat(`{"a":`, 1<<18),
		"too many values":               `2["x",[0` + strings.Repeat(",1", maxValues) + `]]`,
		"too many arguments":            `2["x"` + strings.Repeat(",1", maxArgs+1) + `]`,
		"reserved, connect":             `2["connect"]`,
		"reserved, connect_error":       `2["connect_error"]`,
		"reserved, disconnect":          `2["disconnect"]`,
		"reserved, disconnecting":       `2["disconnecting"]`,
		"reserved, newListener":         `2["newListener"]`,
		"reserved, removeListener":      `2["removeListener"]`,
		"reserved, with attachments":    `51-["connect",{"_placeholder":true,"num":0}]`,
		"reserved, spelled differently": `2["\u0063onnect"]`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewReader(limits).Add([]byte(text), false)
			if err == nil {
				t.Fatalf("taken as %+v", p)
			}
			if len(text) > 8 && strings.Contains(err.Error(), text[3:]) {
				t.Errorf("the error repeats what was sent: %v", err)
			}
		})
	}
}

func TestBoundsAreReached(t *testing.T) {
	for name, text := range map[string]string{
		"depth":     `2["x",` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `]`,
		"arguments": `2["x"` + strings.Repeat(",1", maxArgs) + `]`,
		"namespace": `0/` + strings.Repeat("n", maxNamespace-1) + `,`,
	} {
		if _, err := NewReader(limits).Add([]byte(text), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAttachments(t *testing.T) {
	r := NewReader(limits)
	add := func(data string, binary bool) *Packet {
		t.Helper()
		p, err := r.Add([]byte(data), binary)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const event = `52-/n,7["up",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`
	for range 2 { // the reader is as good as new afterwards
		if p := add(event, false); p != nil {
			t.Fatalf("whole without attachments: %+v", p)
		}
		if p := add("one", true); p != nil {
			t.Fatalf("whole with one of two: %+v", p)
		}
		p := add("two", true)
		if p == nil {
			t.Fatal("not whole with all")
		}
		if p.Type != Event || p.Namespace != "/n" || p.ID != 7 || len(p.Args) != 2 || string(bytes.Join(p.Attachments, []byte{'+'})) != "one+two" {
			t.Errorf("is %+v", p)
		}
		if got := string(p.Text()); got != event {
			t.Errorf("written as %s", got)
		}
		for i, a := range p.Args {
			if n, ok := Placeholder(a); !ok || n != i {
				t.Errorf("argument %d is attachment %d, %v", i, n, ok)
			}
		}
	}
	ack := `61-3[{"_placeholder":true,"num":0}]`
	add(ack, false)
	if p := add("x", true); p.Type != Ack || p.ID != 3 || string(p.Text()) != ack {
		t.Errorf("an acknowledgement is %+v", p)
	}
}

func TestAttachmentsOutOfPlace(t *testing.T) {
	type step struct {
		data   string
		binary bool
	}
	for name, steps := range map[string][]step{
		"of nothing":        {{"x", true}},
		"after the last":    {{`51-["x"]`, false}, {"x", true}, {"x", true}},
		"after a plain one": {{`2["x"]`, false}, {"x", true}},
		"interrupted":       {{`51-["x"]`, false}, {`2["x"]`, false}},
		"too large":         {{`51-["x"]`, false}, {strings.Repeat("x", 1<<20+1), true}},
		"too large in all":  {{`52-["x"]`, false}, {strings.Repeat("x", 1<<19), true}, {strings.Repeat("x", 1<<19+1), true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(limits)
			for i, s := range steps {
				_, err := r.Add([]byte(s.data), s.binary)
				if last := i == len(steps)-1; last != (err != nil) {
					t.Fatalf("step %d: %v", i, err)
				}
			}
		})
	}
}

func TestValues(t *testing.T) {
	args, attachments, err := Values([]any{
		1, "two", map[string]any{"3": []bool{true}}, nil, json.RawMessage(`{ "as": "it is" }`), []byte{1}, json.RawMessage(nil), []byte{2, 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `[1 "two" {"3":[true]} null { "as": "it is" } {"_placeholder":true,"num":0} null {"_placeholder":true,"num":1}]`
	if got := fmt.Sprintf("%s", args); got != want {
		t.Errorf("arguments are %s", got)
	}
	if !reflect.DeepEqual(attachments, [][]byte{{1}, {2, 3}}) {
		t.Errorf("attachments are %v", attachments)
	}
	for name, v := range map[string]any{
		"broken":      json.RawMessage(`{`),
		"two in one":  json.RawMessage(`1,2`),
		"empty":       json.RawMessage{},
		"not UTF-8":   json.RawMessage("\"\xff\""),
		"no JSON":     math.Inf(1),
		"no JSON too": func() {},
	} {
		if _, _, err := Values([]any{v}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPlaceholder(t *testing.T) {
	for text, want := range map[string]int{
		`{"_placeholder":true,"num":3}`:   3,
		`{"num":0,"_placeholder":true}`:   0,
		`{"_placeholder":true,"num":-1}`:  -1,
		`{"_placeholder":true,"num":1.5}`: -1,
		`{"_placeholder":true,"num":"0"}`: -1,
		`{"_placeholder":true}`:           -1,
		`{"_placeholder":false,"num":1}`:  -1,
		`{"num":1}`:                       -1,
		`[1]`:                             -1,
		`null`:                            -1,
		``:                                -1,
	} {
		n, ok := Placeholder(json.RawMessage(text))
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%s is %d, %v", text, n, ok)
		}
	}
}
