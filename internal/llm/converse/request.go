package converse

import (
	"encoding/json"
	"strings"

	"deckhand/internal/llm"
)

// The parts of the Converse API that are used.

type (
	message struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}
	// block has one field.
	block struct {
		Text   string  `json:"text,omitempty"`
		Image  *image  `json:"image,omitempty"`
		Call   *call   `json:"toolUse,omitempty"`
		Result *result `json:"toolResult,omitempty"`
	}
	image struct {
		Format string `json:"format"`
		Source struct {
			Bytes string `json:"bytes"` // base64
		} `json:"source"`
	}
	call struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	result struct {
		ID      string  `json:"toolUseId"`
		Content []block `json:"content"`
		Status  string  `json:"status"`
	}
	spec struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Schema      struct {
			JSON json.RawMessage `json:"json"`
		} `json:"inputSchema"`
	}
	tool struct {
		Spec spec `json:"toolSpec"`
	}
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// request returns the body of a request.
func (m *model) request(req llm.Request) [][]byte {
	b := llm.NewBody(&req, "converse/"+m.name)
	b.Raw(`{"messages":[`)
	first := b.Messages()
	all := messages(req.Messages[first:])
	for i, msg := range all {
		if i == len(all)-1 { // the next message may become a part of it
			b.Keep(first + msg.from)
		}
		b.Item("")
		b.Encode(msg.message)
	}
	b.Raw("]")
	if req.MaxOutput > 0 {
		b.Raw(`,"inferenceConfig":{`)
		b.Number("maxTokens", req.MaxOutput)
		b.Raw("}")
	}
	if strings.TrimSpace(req.System) != "" {
		b.Raw(`,"system":`)
		b.Encode([]block{{Text: req.System}})
	}
	if len(req.Tools) == 0 {
		req.Tools = used(req.Messages)
	}
	if len(req.Tools) > 0 {
		tools := make([]tool, len(req.Tools))
		for i, t := range req.Tools {
			tools[i].Spec = spec{Name: t.Name, Description: t.Description}
			tools[i].Spec.Schema.JSON = schemas.Sent(t.Schema)
		}
		b.Raw(`,"toolConfig":{"tools":`)
		b.Encode(tools)
		b.Raw("}")
	}
	b.Raw("}")
	return b.Parts()
}

var schemas = llm.NewSchemas(func(s json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(s, &fields) != nil || fields == nil {
		return []byte(`{"type":"object"}`)
	}
	if _, typed := fields["type"]; !typed {
		fields["type"] = json.RawMessage(`"object"`)
	}
	out, _ := json.Marshal(fields) // all of it was JSON
	return out
})

// used returns the tools that the history calls. Bedrock refuses a history with calls of undeclared tools.
func used(history []llm.Message) []llm.Tool {
	var out []llm.Tool
	seen := map[string]bool{}
	for _, m := range history {
		for _, c := range m.Calls {
			if !seen[c.Name] {
				seen[c.Name] = true
				out = append(out, llm.Tool{Name: c.Name})
			}
		}
	}
	return out
}

// turn is an API message, with the number of the first history message that it contains.
type turn struct {
	message
	from int
}

// messages converts a history to API messages: user and assistant alternate, and no text is empty.
func messages(history []llm.Message) []turn {
	var out []turn
	for i, msg := range history {
		role, blocks := roleUser, []block(nil)
		switch msg.Role {
		case llm.Assistant:
			role, blocks = roleAssistant, said(msg)
		case llm.ToolResult:
			r := &result{ID: msg.Call, Content: shown(msg), Status: "success"}
			if msg.Failed {
				r.Status = "error"
			}
			if len(r.Content) == 0 {
				r.Content = []block{{Text: "(no output)"}}
			}
			blocks = []block{{Result: r}}
		default:
			blocks = shown(msg)
		}
		if len(blocks) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, blocks...)
			continue
		}
		out = append(out, turn{message{role, blocks}, i})
	}
	return out
}

func said(msg llm.Message) []block {
	var out []block
	if strings.TrimSpace(msg.Text) != "" {
		out = append(out, block{Text: msg.Text})
	}
	for _, c := range msg.Calls {
		input := c.Args
		if !strings.HasPrefix(string(input), "{") || !json.Valid(input) {
			input, _ = json.Marshal(map[string]string{"not_an_object": string(c.Args)})
		}
		out = append(out, block{Call: &call{c.ID, c.Name, input}})
	}
	return out
}

func shown(msg llm.Message) []block {
	var out []block
	if strings.TrimSpace(msg.Text) != "" {
		out = append(out, block{Text: msg.Text})
	}
	for _, url := range msg.Images {
		kind, data, ok := llm.SplitDataURL(url)
		format, isImage := strings.CutPrefix(kind, "image/")
		if !ok || !isImage {
			out = append(out, block{Text: "[There was an image here that could not be read.]"})
			continue
		}
		i := &image{Format: format}
		i.Source.Bytes = data
		out = append(out, block{Image: i})
	}
	return out
}
