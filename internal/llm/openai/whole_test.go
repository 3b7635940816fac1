package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"deckhand/internal/llm"
)

// TestAnswersInOnePiece has servers that are asked to stream and do not, or say
// that they do not.
func TestAnswersInOnePiece(t *testing.T) {
	const calls = `[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\":1}"}}]`
	for _, c := range []struct {
		name, kind, body, text string
		calls                  int
		class                  llm.Class
	}{
		{"whole", "application/json", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`, "hi", 0, ""},
		{"over several lines", "application/json; charset=utf-8", "\n{\n \"choices\": [\n{\"message\": {\"content\": \"hi\"}}],\n\"usage\":{\"prompt_tokens\":3}}\n", "hi", 0, ""},
		{"calls", "application/json", `{"choices":[{"message":{"content":null,"tool_calls":` + calls + `},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3}}`, "", 2, ""},
		{"a stream by another name", "application/json", sse(delta(`{"content":"hi"}`), stop, `{"choices":[],"usage":{"prompt_tokens":3}}`, ending), "hi", 0, ""},
		{"an error", "application/json", `{"error":{"message":"no such model","type":"invalid_request_error"}}`, "", 0, llm.ClassRequest},
		{"no answer", "application/json", `{"choices":[]}`, "", 0, llm.ClassInternal},
		{"nothing", "application/json", ``, "", 0, llm.ClassNetwork},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				fmt.Fprint(w, c.body)
			}))
			defer s.Close()
			h := listen(t.Context(), Chat(llm.Config{BaseURL: s.URL, Client: client(t)}, "m", Options{Compatible: true}), hello())
			var e *llm.Error
			if c.class != "" {
				if !errors.As(h.err, &e) || e.Class != c.class {
					t.Errorf("got %+v", h.err)
				}
				return
			}
			if h.err != nil || h.text != c.text || len(h.calls) != c.calls || h.done.Usage.Input != 3 {
				t.Errorf("got %+v", h)
			}
		})
	}
}
