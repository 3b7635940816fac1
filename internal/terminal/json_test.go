package terminal

import (
	"encoding/json"
	"strings"
	"testing"
)

// JSON keeps the meaning of a JSON text and leaves no terminal control characters.
func TestJSONIsHarmless(t *testing.T) {
	t.Parallel()
	want := map[string]string{"title": "a\u009b31mb\u202ec\u2028\U000e0041 é 日本\n\t\"\\\x1b"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	safe := JSON(text)
	var got map[string]string
	if err := json.Unmarshal(safe, &got); err != nil || got["title"] != want["title"] {
		t.Errorf("%q: %v", got, err)
	}
	if strings.ContainsFunc(string(safe), unsafe) || !strings.Contains(string(safe), `\u009b`) || !strings.Contains(string(safe), `\u202e`) || !strings.Contains(string(safe), "é 日本") {
		t.Errorf("%s", safe)
	}
}
