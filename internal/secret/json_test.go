package secret

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func TestRedactJSON(t *testing.T) {
	const plain, quoted, number, word = "hunter2-hunter2", `say "friend" \o/`, "12345699", "s3cret-word"
	var none *Masker
	if text := `{"a":"` + plain + `"}`; string(NewMasker().JSON([]byte(text), nil)) != text || string(none.JSON([]byte(text), nil)) != text {
		t.Error("an unknown value was masked")
	}
	r := NewMasker(plain, quoted, number, word)
	shape := NewShape([]string{"action", "args.state", "tools.parameters"}, []string{"args.free"}, []string{"calls.arguments"})
	inner, _ := json.Marshal(map[string]string{"command": "echo " + quoted})
	twice, _ := json.Marshal(string(inner))
	for in, want := range map[string]string{
		`{"content":"` + plain + `"}`:                                `{"content":"` + Mask + `"}`,
		` { "a" : [ 1 , { "b" : [ "x` + plain + `y" , true ] } ] } `: ` { "a" : [ 1 , { "b" : [ "x` + Mask + `y" , true ] } ] } `,
		`"` + plain + `"`:                                            `"` + Mask + `"`,
		`["` + plain + `","` + plain + `"]`:                          `["` + Mask + `","` + Mask + `"]`,
		`{"exit_code":12345699,"line":"\n12345699"}`:                 `{"exit_code":12345699,"line":"\n` + Mask + `"}`,
		`{"message":"a s3cret-word","action":"s3cret-word"}`:         `{"message":"a ` + Mask + `","action":"s3cret-word"}`,
		`{"extras":{"action":"s3cret-word"}}`:                        `{"extras":{"action":"` + Mask + `"}}`,
		`{"args":{"state":"s3cret-word","text":"s3cret-word","s3cret-word":1,"free":{"s3cret-word":{"state":"s3cret-word"}}}}`: `{"args":{"state":"s3cret-word","text":"` + Mask + `","s3cret-word":1,"free":{"` + Mask + `":{"state":"` + Mask + `"}}}}`,
		`{"args":[{"state":"s3cret-word"}]}`: `{"args":[{"state":"s3cret-word"}]}`,
		`{"tools":[{"parameters":{"type":"s3cret-word","enum":["s3cret-word"],"a":{"description":"s3cret-word"}}}]}`: `{"tools":[{"parameters":{"type":"s3cret-word","enum":["s3cret-word"],"a":{"description":"` + Mask + `"}}}]}`,
		`{"calls":[{"arguments":"{\"s3cret-word\":\"\\u0068unter2-hunter2\",\"command\":1}"}]}`:                      `{"calls":[{"arguments":"{\"` + Mask + `\":\"` + Mask + `\",\"command\":1}"}]}`,
		`{"calls":[{"arguments":"no JSON, s3cret-word"}]}`:                                                           `{"calls":[{"arguments":"no JSON, ` + Mask + `"}]}`,
		`{"arguments":` + string(twice) + `}`:                                                                        `{"arguments":"{\"command\":\"echo ` + Mask + `\"}"}`,
		`{"b64":"` + base64.StdEncoding.EncodeToString([]byte("user:"+plain)) + `"}`:                                 `{"b64":"dXNlcjp` + Mask + `I="}`,
		`{"a":"<b> ` + plain + `"}`:                                                                                  `{"a":"\u003cb\u003e ` + Mask + `"}`,
		`{}`:                                                                                                         `{}`, `[]`: `[]`, `null`: `null`, `{"a":[]}`: `{"a":[]}`,
		// Not JSON: all of it is text.
		`{"a":"` + plain: `{"a":"` + Mask, `{"a" "` + plain + `"}`: `{"a" "` + Mask + `"}`, `["` + plain + `" 1]`: `["` + Mask + `" 1]`, `{"aaaaaa"`: `{"aaaaaa"`, `{} ` + plain: `{} ` + Mask,
	} {
		if got := string(r.JSON([]byte(in), shape)); got != want {
			t.Errorf("%s\n gives %s\n want  %s", in, got, want)
		}
	}
	deep := strings.Repeat("[", 1<<20)
	if got := r.JSON([]byte(deep+plain), nil); string(got) != deep+Mask {
		t.Error("a deep text was not masked")
	}
	if got := string(r.JSON([]byte(`{"s3cret-word":{"s3cret-word":"s3cret-word"}}`), Inner)); got != `{"s3cret-word":{"`+Mask+`":"`+Mask+`"}}` {
		t.Error(got)
	}
}

// Masking leaves JSON, of the same shape, without the secret.
func FuzzRedactJSON(f *testing.F) {
	for _, s := range []string{`{"a":"hunter2-hunter2"}`, `[1,"\u0068unter2-hunter2",null]`, `{"a":{"b":["\\hunter2-hunter2"]}}`, `"\nhunter2-hunter2\""`, `{"keep":"hunter2-hunter2"}`} {
		f.Add(s)
	}
	r := NewMasker("hunter2-hunter2")
	f.Fuzz(func(t *testing.T, in string) {
		out := r.JSON([]byte(in), nil)
		if !json.Valid([]byte(in)) {
			return
		}
		var was, is any
		if json.Unmarshal([]byte(in), &was) != nil {
			return
		}
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%q gives %q: %v", in, out, err)
		}
		same(t, r, was, is)
	})
}

// same fails unless is is was with its strings masked.
func same(t *testing.T, r *Masker, was, is any) {
	t.Helper()
	switch a := was.(type) {
	case string:
		if is != r.String(a) {
			t.Fatalf("%q became %q", a, is)
		}
	case []any:
		b, ok := is.([]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%v became %v", was, is)
		}
		for i := range a {
			same(t, r, a[i], b[i])
		}
	case map[string]any:
		b, ok := is.(map[string]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%v became %v", was, is)
		}
		for k := range a {
			same(t, r, a[k], b[k])
		}
	default:
		if was != is {
			t.Fatalf("%v became %v", was, is)
		}
	}
}
