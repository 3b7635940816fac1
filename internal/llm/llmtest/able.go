package llmtest

import (
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// Able responds like a model that passes all checks. If key is set, requests without it as a bearer token get OpenAI's
// error message, which repeats the sent key.
func Able(key string) func(Asked) Reply {
	return func(a Asked) Reply {
		last, sent := a.Messages[len(a.Messages)-1], strings.TrimPrefix(a.Header.Get("Authorization"), "Bearer ")
		switch {
		case key != "" && sent != key:
			return Reply{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "Incorrect API key provided: " + sent}
		case len(a.Tools) > 0 && last.Role == llm.User:
			return Reply{Calls: []llm.Call{{ID: "c1", Name: a.Tools[0], Args: []byte(`{"word":"apple"}`)}, {ID: "c2", Name: a.Tools[0], Args: []byte(`{"word":"pear"}`)}}}
		case len(last.Images) > 0:
			return Reply{Text: "Red"}
		}
		return Reply{Text: "one two three four five six seven"}
	}
}
