package secret

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func TestRedactJSON(t *testing.T) {
	const plain, quoted, number, word = "hunter2-hunter2", `say "friend" \o/`, "123456", "message"
	r := NewRedactor()
	if text := `{"a":"` + plain + `"}`; string(r.JSON([]byte(text))) != text {
		t.Error("what nobody knows was masked")
	}
	r.Add(plain, quoted, number, word)
	inner, _ := json.Marshal(map[string]string{"command": "echo " + quoted})
	twice, _ := json.Marshal(string(inner))
	for in, want := range map[string]string{
		`{"content":"` + plain + `"}`:                                                `{"content":"` + Mask + `"}`,
		` { "a" : [ 1 , { "b" : [ "x` + plain + `y" , true ] } ] } `:                 ` { "a" : [ 1 , { "b" : [ "x` + Mask + `y" , true ] } ] } `,
		`"` + plain + `"`:                                                            `"` + Mask + `"`,
		`["` + plain + `","` + plain + `"]`:                                          `["` + Mask + `","` + Mask + `"]`,
		`{"exit_code":123456,"line":"\n123456"}`:                                     `{"exit_code":123456,"line":"\n` + Mask + `"}`,
		`{"message":"a message","action":"message"}`:                                 `{"message":"a ` + Mask + `","action":"message"}`,
		`{"extras":{"action":"message"}}`:                                            `{"extras":{"action":"` + Mask + `"}}`,
		`{"arguments":` + string(twice) + `}`:                                        `{"arguments":"{\"command\":\"echo ` + Mask + `\"}"}`,
		`{"b64":"` + base64.StdEncoding.EncodeToString([]byte("user:"+plain)) + `"}`: `{"b64":"dXNlcjp` + Mask + `I="}`,
		`{"a":"<b> ` + plain + `"}`:                                                  `{"a":"\u003cb\u003e ` + Mask + `"}`,
		`{}`:                                                                         `{}`, `[]`: `[]`, `null`: `null`, `{"a":[]}`: `{"a":[]}`,
		// Not JSON: nobody can tell what is what.
		`{"a":"` + plain: `{"a":"` + plain, `{"a" "` + plain + `"}`: `{"a" "` + plain + `"}`, `["` + plain + `" 1]`: `["` + plain + `" 1]`, `{"aaaaaa"`: `{"aaaaaa"`,
	} {
		if got := string(r.JSON([]byte(in), "action")); got != want {
			t.Errorf("%s\n gives %s\n want  %s", in, got, want)
		}
	}
	deep := strings.Repeat("[", 1<<20)
	if got := r.JSON([]byte(deep)); string(got) != deep {
		t.Error("a deep text was changed")
	}
}

// Masking leaves JSON, of the same shape, without the secret.
func FuzzRedactJSON(f *testing.F) {
	for _, s := range []string{`{"a":"hunter2-hunter2"}`, `[1,"\u0068unter2-hunter2",null]`, `{"a":{"b":["\\hunter2-hunter2"]}}`, `"\nhunter2-hunter2\""`, `{"keep":"hunter2-hunter2"}`} {
		f.Add(s)
	}
	r := NewRedactor()
	r.Add("hunter2-hunter2")
	f.Fuzz(func(t *testing.T, in string) {
		out := r.JSON([]byte(in))
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
func same(t *testing.T, r *Redactor, was, is any) {
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
