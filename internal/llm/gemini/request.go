package gemini

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"deckhand/internal/llm"
)

// request is what is sent.
func (m *model) request(req llm.Request) body {
	b := body{Contents: contents(m.name, req.Messages), Config: config{MaxOutput: int32(min(req.MaxOutput, math.MaxInt32))}}
	if strings.TrimSpace(req.System) != "" {
		b.System = &content{Parts: []*part{{Text: req.System}}, Role: roleUser}
	}
	if m.options.Thinks {
		b.Config.Thinking = &thinking{Include: true}
	}
	if len(req.Tools) == 0 {
		return b
	}
	tools := &toolList{}
	for _, t := range req.Tools {
		tools.Functions = append(tools.Functions, function{Name: t.Name, Description: t.Description, Schema: schema(t.Schema)})
	}
	b.Tools = []*toolList{tools}
	return b
}

// schema is a tool's schema without what says nothing about its arguments and
// is not part of Gemini's JSON schema. A tool without arguments has none.
func schema(s json.RawMessage) map[string]any {
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
	return fields
}

// contents is the conversation. The results of an answer's calls are one
// content, and what else was said has its own. name is the model's.
func contents(name string, history []llm.Message) []*content {
	var out []*content
	tools := map[string]string{} // which tool a call was for
	var results, pictures []*part
	flush := func() {
		if len(results) > 0 {
			out = append(out, &content{Role: roleUser, Parts: results})
		}
		if len(pictures) > 0 {
			out = append(out, &content{Role: roleUser, Parts: pictures})
		}
		results, pictures = nil, nil
	}
	for _, msg := range history {
		if msg.Role == llm.ToolResult {
			if msg.Name == "" {
				msg.Name = tools[msg.Call]
			}
			results = append(results, result(msg))
			pictures = append(pictures, seen(msg)...)
			continue
		}
		flush()
		role, parts := roleUser, []*part(nil)
		if msg.Role == llm.Assistant {
			for _, c := range msg.Calls {
				tools[c.ID] = c.Name
			}
			role, parts = roleModel, said(name, msg)
		} else {
			parts = append(text(msg.Text), images(msg.Images)...)
		}
		if len(parts) > 0 {
			out = append(out, &content{Role: role, Parts: parts})
		}
	}
	flush()
	return out
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
