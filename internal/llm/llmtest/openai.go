package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
)

// serial makes the ids of answers unique.
var serial atomic.Int64

func nextID(prefix string) string { return prefix + strconv.FormatInt(serial.Add(1), 36) }

// openaiError is an error in the shape of both OpenAI wires.
type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openaiFailure is the body of an error of both OpenAI wires.
func openaiFailure(r Reply) []byte {
	e := openaiError{Message: r.Message, Type: "invalid_request_error", Code: &r.Code}
	switch {
	case r.Status == http.StatusTooManyRequests && r.Code == "":
		e.Type, r.Code = "requests", "rate_limit_exceeded"
	case r.Status == http.StatusTooManyRequests:
		e.Type = r.Code
	case r.Status == http.StatusUnauthorized && r.Code == "":
		r.Code = "invalid_api_key"
	case r.Status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	if r.Code == "" {
		e.Code = nil
	}
	return mustJSON(map[string]any{"error": e})
}

// content reads a text that may also be a list of parts, with images among them.
func content(raw json.RawMessage) (text string, images []string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil, nil
	}
	if raw[0] == '"' {
		err = json.Unmarshal(raw, &text)
		return text, nil, err
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		ImageURL json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", nil, fmt.Errorf("content is neither a text nor a list of parts: %w", err)
	}
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			if p.Text == "" {
				return "", nil, fmt.Errorf("part %d of a content is an empty text", i)
			}
			text += p.Text
		case "image_url", "input_image":
			url, err := imageURL(p.ImageURL)
			if err != nil {
				return "", nil, err
			}
			images = append(images, url)
		default:
			return "", nil, fmt.Errorf("part %d of a content has the unknown type %q", i, p.Type)
		}
	}
	return text, images, nil
}

// imageURL reads an address that stands alone (responses) or in an object (chat).
func imageURL(raw json.RawMessage) (string, error) {
	var url string
	if json.Unmarshal(raw, &url) == nil {
		return url, nil
	}
	var in struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || in.URL == "" {
		return "", errors.New("an image has no address")
	}
	return in.URL, nil
}

// function is a tool as both OpenAI wires describe it.
type function struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

// check insists on what providers insist on.
func (f function) check() error {
	if f.Name == "" {
		return errors.New("a tool has no name")
	}
	var schema struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(f.Parameters, &schema); err != nil || schema.Type != "object" {
		return fmt.Errorf("the parameters of the tool %q are not a schema of type object", f.Name)
	}
	return nil
}

// object insists that arguments sent back are a JSON object: some compatible
// servers read them before they show them to the model.
func object(arguments string) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &m); err != nil || m == nil {
		return fmt.Errorf("the arguments %.40q are not a JSON object", arguments)
	}
	return nil
}
