package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// maxWhole is the maximum size of a response without streaming.
const maxWhole = 16 << 20

// unrolled converts a JSON response to a stream: some servers mislabel streams as JSON,
// and some cannot stream. Otherwise it returns the body.
func unrolled(res *http.Response) (*http.Response, []byte, error) {
	r := bufio.NewReader(res.Body)
	first, err := r.ReadByte()
	for err == nil && strings.IndexByte(" \t\r\n", first) >= 0 {
		first, err = r.ReadByte()
	}
	if err == nil {
		err = r.UnreadByte()
	}
	if err == nil && first != '{' && first != '[' {
		res.Body = struct {
			io.Reader
			io.Closer
		}{r, res.Body}
		return res, nil, nil
	}
	defer res.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r, maxWhole))
	if chunk := asChunk(body); chunk != nil {
		res.Body = io.NopCloser(bytes.NewReader(append(append([]byte("data: "), chunk...), "\n\ndata: [DONE]\n\n"...)))
		return res, nil, nil
	}
	return nil, body[:min(len(body), maxRefusal)], err
}

// asChunk returns a chat completion as a single chunk, or nil. The message has the fields
// of a delta.
func asChunk(body []byte) []byte {
	type choice struct {
		Index   int             `json:"index"`
		Message json.RawMessage `json:"message,omitempty"`
		Delta   json.RawMessage `json:"delta,omitempty"`
		Reason  string          `json:"finish_reason"`
	}
	var c struct {
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage,omitempty"`
	}
	if json.Unmarshal(body, &c) != nil || len(c.Choices) == 0 || len(c.Choices[0].Message) == 0 {
		return nil
	}
	for i, at := range c.Choices {
		if at.Reason == "" { // nothing follows, so it has ended
			at.Reason = "stop"
		}
		c.Choices[i] = choice{Index: at.Index, Delta: at.Message, Reason: at.Reason}
	}
	out, err := json.Marshal(c)
	if err != nil {
		return nil
	}
	return out
}
