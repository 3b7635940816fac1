package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The versions of the protocol that are spoken here, newest first. Between them
// nothing changed in what we use of it.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// message is any message of JSON-RPC 2.0: a request has a method and an id, a
// notification a method alone, an answer an id alone.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *problem        `json:"error,omitempty"`
}

// problem is an error of JSON-RPC.
type problem struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

const noSuchMethod = -32601

func (p *problem) Error() string {
	text := p.Message
	if text == "" {
		text = "an error without words"
	}
	return fmt.Sprintf("%s (code %d)", text, p.Code)
}

// parse reads the messages of a line: one, or several as an array, which one
// version of the protocol allows. What is not of JSON-RPC is not ok.
func parse(line []byte) (all []message, ok bool) {
	if len(line) > 0 && line[0] == '[' {
		if json.Unmarshal(line, &all) != nil || len(all) == 0 {
			return nil, false
		}
	} else {
		all = make([]message, 1)
		if json.Unmarshal(line, &all[0]) != nil {
			return nil, false
		}
	}
	for i := range all {
		m := &all[i]
		if bytes.Equal(m.ID, []byte("null")) {
			m.ID = nil
		}
		if m.Version != "2.0" || m.Method == "" && m.ID == nil && m.Error == nil {
			return nil, false
		}
	}
	return all, true
}
