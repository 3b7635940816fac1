package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"deckhand/internal/llm"
)

type geminiRequest struct {
	SystemInstruction struct{ Parts []geminiPart }
	Contents          []struct {
		Role  string
		Parts []geminiPart
	}
	Tools []struct {
		FunctionDeclarations []struct{ Name string }
	}
}

type geminiPart struct {
	Text             string
	Thought          bool
	ThoughtSignature string
	InlineData       *struct{ MimeType, Data string }
	FunctionCall     *struct {
		ID, Name string
		Args     json.RawMessage
	}
	FunctionResponse *struct {
		ID, Name string
		Response map[string]any
	}
}

func (geminiWire) read(r *http.Request, body []byte) (Asked, error) {
	name, action, _ := strings.Cut(path.Base(r.URL.Path), ":")
	a := Asked{Wire: Gemini, Model: name, Stream: action == "streamGenerateContent"}
	if a.Stream && r.URL.Query().Get("alt") != "sse" {
		return a, errors.New("this server streams with alt=sse only")
	}
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return a, err
	}
	for _, p := range in.SystemInstruction.Parts {
		a.System += p.Text
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			a.Tools = append(a.Tools, f.Name)
		}
	}
	v := geminiReader{asked: &a, signs: !strings.HasPrefix(name, "gemini-2") && !strings.HasPrefix(name, "gemini-1")}
	for i, c := range in.Contents {
		if err := v.content(c.Role, c.Parts); err != nil {
			return a, fmt.Errorf("contents[%d]: %w", i, err)
		}
	}
	return a, nil
}

// geminiReader reads contents one by one and knows what stood before.
type geminiReader struct {
	asked *Asked
	// signs says that the model insists on the signatures of calls.
	signs bool
	// open are the calls of the content before.
	open []llm.Call
}

func (v *geminiReader) content(role string, parts []geminiPart) error {
	if len(parts) == 0 {
		return errors.New("parts must not be empty")
	}
	for i, p := range parts {
		if p.Text == "" && p.InlineData == nil && p.FunctionCall == nil && p.FunctionResponse == nil {
			return fmt.Errorf("parts[%d].data: required oneof field 'data' must have one initialized field", i)
		}
	}
	switch role {
	case "model":
		return v.model(parts)
	case "user":
		return v.user(parts)
	}
	return fmt.Errorf("please use a valid role: user, model; got %q", role)
}

func (v *geminiReader) model(parts []geminiPart) error {
	m := llm.Message{Role: llm.Assistant}
	for _, p := range parts {
		switch {
		case p.FunctionCall != nil:
			c := llm.Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: p.FunctionCall.Args}
			if c.ID == "" {
				c.ID = fmt.Sprintf("%s#%d", c.Name, len(m.Calls))
			}
			if len(c.Args) == 0 {
				c.Args = json.RawMessage(`{}`)
			}
			if err := v.signed(c, p.ThoughtSignature, len(m.Calls) == 0); err != nil {
				return err
			}
			m.Calls = append(m.Calls, c)
		case !p.Thought:
			m.Text += p.Text
		}
	}
	v.open = m.Calls
	v.asked.Messages = append(v.asked.Messages, m)
	return nil
}

// signed checks the signature of a call. Only the first of parallel ones has one.
func (v *geminiReader) signed(c llm.Call, signature string, first bool) error {
	skip := base64.StdEncoding.EncodeToString([]byte(geminiSkip))
	switch {
	case signature == "" && first && v.signs:
		return fmt.Errorf("function call is missing a thought_signature in functionCall parts: %s", c.Name)
	case signature != "" && signature != geminiSignature(c) && signature != skip && signature != geminiSkip:
		return errors.New("thought signature is not valid")
	}
	return nil
}

func (v *geminiReader) user(parts []geminiPart) error {
	said := llm.Message{Role: llm.User}
	answered, results := len(v.open), 0
	for _, p := range parts {
		switch {
		case p.FunctionResponse != nil:
			m, err := v.result(p, results)
			if err != nil {
				return err
			}
			results++
			v.asked.Messages = append(v.asked.Messages, m)
		case p.InlineData != nil:
			said.Images = append(said.Images, "data:"+p.InlineData.MimeType+";base64,"+p.InlineData.Data)
		default:
			said.Text += p.Text
		}
	}
	if results != answered {
		return errors.New("please ensure that the number of function response parts is equal to the number of function call parts of the function call turn")
	}
	v.open = nil
	if results < len(parts) {
		v.asked.Messages = append(v.asked.Messages, said)
	}
	return nil
}

// result is the n-th result of a content. Without an id it belongs to the n-th call.
func (v *geminiReader) result(p geminiPart, n int) (llm.Message, error) {
	f := p.FunctionResponse
	m := llm.Message{Role: llm.ToolResult, Call: f.ID, Name: f.Name}
	if f.Name == "" {
		return m, errors.New("function_response.name: Name cannot be empty")
	}
	if m.Call == "" && n < len(v.open) {
		m.Call = v.open[n].ID
	}
	if failure, is := f.Response["error"].(string); is {
		m.Text, m.Failed = failure, true
		return m, nil
	}
	m.Text, _ = f.Response["output"].(string)
	return m, nil
}
