package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSchemasAreBounded(t *testing.T) {
	s := NewSchemas(func(schema json.RawMessage) []byte {
		return bytes.Replace(schema, []byte("{"), []byte(`{"type":"object",`), 1)
	})
	large := strings.Repeat("x", maxSchemas/20)
	for i := range 25 {
		schema := json.RawMessage(fmt.Sprintf(`{"title":"%d %s"}`, i, large))
		for range 2 {
			if got := string(s.Sent(schema)); !strings.Contains(got, fmt.Sprintf(`"title":"%d x`, i)) || !strings.Contains(got, `"type":"object"`) {
				t.Fatalf("schema %d is sent as %.100s", i, got)
			}
		}
		held := 0
		for schema, sent := range s.sent {
			held += len(schema) + len(sent)
		}
		if held != s.size || held > maxSchemas || held == 0 {
			t.Fatalf("%d bytes are held, counted as %d", held, s.size)
		}
	}
	s.Sent(json.RawMessage(`{"title":"` + strings.Repeat(large, 3) + `"}`))
	for schema := range s.sent {
		if len(schema) > maxSchemas/8 {
			t.Error("one schema takes the place of all others")
		}
	}
}
