package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The wire: what is used of the messages API. The order of the fields is part of
// it, for the provider's cache compares bytes.

// thinking has a budget, or a way to be shown if the model decides itself.
type thinking struct {
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type"`
}

// outputConfig says how much a model thinks that decides itself how to.
type outputConfig struct {
	Effort string `json:"effort"`
}

// tool declares a tool with its schema as it is.
type tool struct {
	Schema      json.RawMessage `json:"input_schema"`
	Name        string          `json:"name"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
	Description string          `json:"description,omitempty"`
}

// message is a turn.
type message struct {
	Content []any  `json:"content"` // blocks
	Role    string `json:"role"`
	first   int    // the number of the first message of the history that is in it
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// cacheControl marks the end of what the provider should keep.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{Type: "ephemeral"}

type (
	textBlock struct {
		Text  string        `json:"text"`
		Cache *cacheControl `json:"cache_control,omitempty"`
		Type  string        `json:"type"`
	}
	imageBlock struct {
		Source imageSource   `json:"source"`
		Cache  *cacheControl `json:"cache_control,omitempty"`
		Type   string        `json:"type"`
	}
	imageSource struct {
		Data      string `json:"data"`
		MediaType string `json:"media_type"`
		Type      string `json:"type"`
	}
	callBlock struct {
		ID    string          `json:"id"`
		Input json.RawMessage `json:"input"`
		Name  string          `json:"name"`
		Type  string          `json:"type"`
	}
	resultBlock struct {
		Call    string        `json:"tool_use_id"`
		Failed  bool          `json:"is_error,omitempty"`
		Cache   *cacheControl `json:"cache_control,omitempty"`
		Content []any         `json:"content,omitempty"`
		Type    string        `json:"type"`
	}
	thinkingBlock struct {
		Signature string `json:"signature"`
		Thinking  string `json:"thinking"`
		Type      string `json:"type"`
	}
	redactedBlock struct {
		Data string `json:"data"`
		Type string `json:"type"`
	}
)

func newText(text string) *textBlock { return &textBlock{Text: text, Type: "text"} }

// event is a frame of an answer. Which fields it has depends on its type.
type event struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta delta `json:"delta"`
	Usage usage `json:"usage"`
}

// delta is what a frame adds to a block, or to the message.
type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
	StopDetails struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// usage is what was counted; nil where the server says nothing.
type usage struct {
	Input      *count `json:"input_tokens"`
	Output     *count `json:"output_tokens"`
	CacheRead  *count `json:"cache_read_input_tokens"`
	CacheWrite *count `json:"cache_creation_input_tokens"`
}

// count is a whole number. Some servers write it as a string, or as a float.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		return nil // it stays 0: one odd field is no reason to lose an answer
	}
	*c = count(n)
	return nil
}
