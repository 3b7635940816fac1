package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/tool"
)

// Bounds of a result.
const (
	// maxText is how many characters of a result the model gets.
	maxText = 30_000
	// maxDetails is how many bytes of a result are kept as they were sent.
	maxDetails = 1 << 20
	maxImages  = 20
	// maxImage is what the models take.
	maxImage = 5 << 20
)

// content is one piece of a result, as far as it can be shown.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// details are kept with the result, under the name that clients know.
type details struct {
	Result json.RawMessage `json:"result"`
}

// render makes a result of what a server answered.
func render(raw []byte) tool.Result {
	var r struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || !isObject(raw) {
		return failure("The tool's result could not be understood.")
	}
	out := tool.Result{Failed: r.IsError}
	var parts []string
	for _, piece := range r.Content {
		var c content
		if json.Unmarshal(piece, &c) != nil {
			c.Type = "unreadable"
		}
		text, image := show(c)
		if image != "" && len(out.Images) < maxImages {
			out.Images = append(out.Images, image)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 && len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null" {
		parts = append(parts, string(r.StructuredContent))
	}
	text := strings.ToValidUTF8(strings.Join(parts, "\n"), "�")
	if text == "" {
		text = "The tool gave no output."
		if r.IsError {
			text = "The tool failed without saying why."
		}
	}
	out.Text = clip.MiddleRunes(text, maxText)
	out.Details = detail(raw, out)
	return out
}

// detail keeps the result as it was sent; one that is too large is kept as the model saw it.
func detail(raw []byte, r tool.Result) json.RawMessage {
	if len(raw) > maxDetails {
		raw, _ = json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": r.Text}}, "isError": r.Failed})
	}
	b, err := json.Marshal(details{raw})
	if err != nil {
		return nil
	}
	return b
}

// failure is a call that gave no result, in the shape that clients know.
func failure(text string) tool.Result {
	raw, _ := json.Marshal(map[string]any{"isError": true, "error": text, "content": []any{}})
	return tool.Result{Text: text, Failed: true, Details: detail(raw, tool.Result{})}
}

// show is what the model gets of a piece, and the image if it is one.
func show(c content) (text, image string) {
	switch c.Type {
	case "text":
		return c.Text, ""
	case "image":
		return picture(c.MIMEType, c.Data)
	case "audio":
		return fmt.Sprintf("[audio, %s, %s, which cannot be played]", kindOf(c.MIMEType), weight(c.Data)), ""
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[resource %s %s]", c.Name, c.URI)), ""
	case "resource":
		return embedded(c)
	}
	return "[a part of the result that cannot be shown]", ""
}

// embedded is a resource that came along.
func embedded(c content) (text, image string) {
	r := c.Resource
	head := fmt.Sprintf("[resource %s]", r.URI)
	if r.Blob == "" {
		return head + "\n" + r.Text, ""
	}
	if strings.HasPrefix(r.MIMEType, "image/") {
		text, image = picture(r.MIMEType, r.Blob)
		return head + " " + text, image
	}
	return fmt.Sprintf("%s [%s, %s, which is not text]", head, kindOf(r.MIMEType), weight(r.Blob)), ""
}

// picture is an image for models that see, and a line for those that do not.
func picture(kind, data string) (text, image string) {
	text = fmt.Sprintf("[image, %s, %s]", kindOf(kind), weight(data))
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return text, ""
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(b) == 0 || len(b) > maxImage {
		return text, ""
	}
	return text, "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b)
}

func kindOf(mime string) string {
	if mime == "" {
		return "of an unknown kind"
	}
	return clip.MiddleRunes(mime, 100)
}

// weight is how large data is that travelled as base64.
func weight(data string) string {
	return fmt.Sprintf("%d bytes", base64.StdEncoding.DecodedLen(len(data))-strings.Count(data[max(0, len(data)-2):], "="))
}
