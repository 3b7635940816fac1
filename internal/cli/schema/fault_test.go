package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/cli/schema"
)

// What is not a JSON schema is refused, with the place of the fault.
func TestRead(t *testing.T) {
	t.Parallel()
	const valid = "-"
	for text, want := range map[string]string{
		`{}`: valid, `true`: valid, `{"type": ["object", "null"], "properties": {"a": {"type": "string", "pattern": "^a"}}, "required": ["a"]}`: valid,
		`{"$ref": "#/$defs/a", "$defs": {"a": {"enum": [1, "b"]}}}`: valid, `{"anyOf": [{"type": "array", "items": {"minimum": 1}}, false]}`: valid,
		`{"type": "objekt"}`: "#/type: objekt is not a type", `{"properties": {"a": {"type": "text"}}}`: "#/properties/a/type: text",
		`{"properties": []}`: "#/properties must be", `"text"`: "# must be", `[]`: "# must be", `{"passed": true}`: "no keyword", `{"properties": {"a": "string"}}`: "#/properties/a must be",
		`{"type": "object", "required": "a"}`: "#/required", `{"anyOf": []}`: "#/anyOf must be a list of schemas", `{"type": "string", "minLength": -1}`: "#/minLength",
		`{"type": "string", "pattern": "("}`: "pattern", `{"$ref": "#/$defs/none"}`: "none", `{"type": 5}`: "#/type", `{"type": "string", "maximum": "5"}`: "#/maximum", `{`: "",
	} {
		file := filepath.Join(t.TempDir(), "schema.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := schema.Read(file)
		switch {
		case want == valid && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != valid && (err == nil || !strings.Contains(err.Error(), "is not a JSON schema") || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
