package gemini

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/llm"
)

// request is what is sent.
func (m *model) request(req llm.Request) [][]byte {
	wire, vertex := from+"/"+m.name, m.options.Vertex != ""
	if vertex {
		wire += "/vertex"
	}
	b := llm.NewBody(&req, wire)
	b.Raw(`{"contents":[`)
	contents(b, m.name, vertex, req.Messages)
	b.Raw(`],"generationConfig":`)
	config := config{MaxOutput: int32(min(req.MaxOutput, math.MaxInt32))}
	if m.options.Thinks {
		config.Thinking = m.thinking()
	}
	b.Encode(config)
	if strings.TrimSpace(req.System) != "" {
		b.Raw(`,"systemInstruction":`)
		b.Encode(content{Parts: text(req.System), Role: roleUser})
	}
	b.Tools(func() {
		b.Raw(`,"tools":[{"functionDeclarations":[`)
		for _, t := range req.Tools {
			b.Item("")
			b.Encode(function{Name: t.Name, Description: t.Description, Schema: schemas.Sent(t.Schema)})
		}
		b.Raw("]}]")
	})
	b.Raw("}")
	return b.Parts()
}

// thinking is how much the model thinks. Gemini 2.5 has budgets in tokens, and later models have levels. What the default
// amounts to differs between models, so a medium effort is left to them.
func (m *model) thinking() *thinking {
	t, budgets := &thinking{Include: true}, strings.Contains(m.name, "gemini-2")
	switch effort := m.options.Effort; {
	case effort == "low" && budgets:
		t.Budget = 1024
	case effort == "high" && budgets:
		t.Budget = 24576
	case effort == "low", effort == "high":
		t.Level = effort
	}
	return t
}

var schemas = llm.NewSchemas(schema)

// schema is a tool's schema without what says nothing about its arguments and
// is not part of Gemini's JSON schema. A tool without arguments has none.
func schema(s json.RawMessage) []byte {
	var fields map[string]any
	if json.Unmarshal(s, &fields) != nil || len(fields) == 0 {
		return nil
	}
	delete(fields, "$schema")
	if properties, _ := fields["properties"].(map[string]any); len(properties) == 0 && fields["$ref"] == nil && fields["anyOf"] == nil && fields["oneOf"] == nil {
		return nil
	}
	if _, typed := fields["type"]; !typed && fields["$ref"] == nil {
		fields["type"] = "object"
	}
	out, _ := json.Marshal(fields) // what was read can be written
	return out
}

// contents writes the conversation. The results of an answer's calls are one
// content, and what else was said has its own. name is the model's. Vertex AI knows calls
// by their order, without ids.
func contents(b *llm.Body, name string, vertex bool, history []llm.Message) {
	write := func(role string, parts []*part) {
		for _, p := range parts {
			switch {
			case vertex && p.Call != nil:
				p.Call.ID = ""
			case vertex && p.Result != nil:
				p.Result.ID = ""
			}
		}
		if len(parts) > 0 {
			b.Item("")
			b.Encode(content{Role: role, Parts: parts})
		}
	}
	var results, pictures []*part
	flush := func() {
		write(roleUser, results)
		write(roleUser, pictures)
		results, pictures = nil, nil
	}
	for i := b.Messages(); i < len(history); i++ {
		switch msg := history[i]; msg.Role {
		case llm.ToolResult:
			if msg.Name == "" {
				msg.Name = called(history[:i], msg.Call)
			}
			results = append(results, result(msg))
			pictures = append(pictures, seen(msg)...)
			continue
		case llm.Assistant:
			flush()
			write(roleModel, said(name, msg))
		default:
			flush()
			write(roleUser, append(text(msg.Text), images(msg.Images)...))
		}
		b.Keep(i + 1)
	}
	flush()
}

// called is the tool that a call was for.
func called(history []llm.Message, id string) string {
	for _, msg := range slices.Backward(history) {
		for _, c := range slices.Backward(msg.Calls) {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return ""
}

func text(s string) []*part {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []*part{{Text: s}}
}

// unreadable stands for an image that is not a data: URL.
const unreadable = "[There was an image here that could not be read.]"

func images(urls []string) []*part {
	var parts []*part
	for _, url := range urls {
		mediaType, content, ok := llm.SplitDataURL(url)
		data, err := base64.StdEncoding.DecodeString(content)
		if !ok || err != nil {
			parts = append(parts, &part{Text: unreadable})
			continue
		}
		parts = append(parts, &part{Image: &blob{MIMEType: mediaType, Data: data}})
	}
	return parts
}

// result is the result of a call.
func result(msg llm.Message) *part {
	field := "output"
	if msg.Failed {
		field = "error"
	}
	return &part{Result: &functionResult{ID: msg.Call, Name: msg.Name, Response: map[string]string{field: msg.Text}}}
}

// seen are the images of a result. Few models take them inside of it, so they
// follow as if a person showed them.
func seen(msg llm.Message) []*part {
	if len(msg.Images) == 0 {
		return nil
	}
	return append([]*part{{Text: "What " + msg.Name + " shows:"}}, images(msg.Images)...)
}

// said is what the model said, with the signatures that it gave.
func said(name string, msg llm.Message) []*part {
	pieces, own := remembered(name, msg)
	if !own {
		return unsigned(name, msg)
	}
	var parts []*part
	left, calls := msg.Text, msg.Calls
	for _, p := range pieces {
		if p.Call {
			parts = append(parts, &part{Call: call(calls[0]), Signature: p.Signature})
			calls = calls[1:]
			continue
		}
		if p.Text > 0 {
			parts = append(parts, &part{Text: left[:p.Text], Signature: p.Signature})
			left = left[p.Text:]
		}
	}
	return parts
}

// skip is the signature for calls that have none, because another model made
// them. Newer models refuse calls without a signature.
const skip = "skip_thought_signature_validator"

// unsigned is what another model said.
func unsigned(name string, msg llm.Message) []*part {
	parts := text(msg.Text)
	for i, c := range msg.Calls {
		p := &part{Call: call(c)}
		if i == 0 && insists(name) {
			p.Signature = []byte(skip)
		}
		parts = append(parts, p)
	}
	return parts
}

var generation = regexp.MustCompile(`gemini-(\d+)`)

// insists reports whether the model refuses calls without a signature: that
// came with Gemini 3.
func insists(name string) bool {
	v := generation.FindStringSubmatch(name)
	if v == nil {
		return false
	}
	n, err := strconv.Atoi(v[1])
	return err == nil && n >= 3
}

// call is a call. What was not an object is wrapped, for the API takes only objects.
func call(c llm.Call) *functionCall {
	var args map[string]any
	if json.Unmarshal(c.Args, &args) != nil {
		args = map[string]any{"not_an_object": string(c.Args)}
	}
	return &functionCall{ID: c.ID, Name: c.Name, Args: args}
}
