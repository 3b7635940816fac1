package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/clip"
)

// Bounds of what a server may tell the model about itself.
const (
	maxTools       = 200
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
	// maxSchemas is for all tools of a server together.
	maxSchemas = 1 << 20
	// maxPages bounds a list that does not end.
	maxPages = 100
)

// offer is a tool as far as its server is believed.
type offer struct {
	name        string
	description string
	schema      json.RawMessage
	// repeatable says that calling it twice is as good as once.
	repeatable bool
}

// anything is the schema of a tool whose own is of no use.
var anything = json.RawMessage(`{"type":"object"}`)

// described is what a server says of a tool, whichever way it came.
type described struct {
	name, title, description string
	schema                   json.RawMessage
	readOnly, idempotent     bool
}

// judge makes offers of what a server says. The note tells what was left out.
func judge(list []described) (offers []offer, note string) {
	total := 0
	seen := map[string]bool{}
	for _, d := range list {
		if d.name == "" || seen[d.name] {
			continue
		}
		o := offer{name: d.name, description: describe(d), schema: objectSchema(d.schema), repeatable: d.readOnly || d.idempotent}
		if total+len(o.schema) > maxSchemas || len(offers) == maxTools {
			return offers, fmt.Sprintf("Only %d of its %d tools are used: the limit for one MCP server is reached.", len(offers), len(list))
		}
		seen[d.name] = true
		total += len(o.schema)
		offers = append(offers, o)
	}
	return offers, ""
}

func describe(d described) string {
	text := d.description
	if strings.TrimSpace(text) == "" {
		text = d.title
	}
	return clip.Bytes(strings.ToValidUTF8(text, "�"), maxDescription)
}

// objectSchema is the schema if it is one of an object, as models want it.
func objectSchema(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxSchema {
		return anything
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return anything
	}
	kind, ok := fields["type"]
	if !ok { // what has arguments at all has them by name
		fields["type"] = json.RawMessage(`"object"`)
	} else if string(kind) != `"object"` {
		return anything
	}
	if p, ok := fields["properties"]; ok && !isObject(p) {
		return anything
	}
	out, err := json.Marshal(fields)
	if err != nil || len(out) > maxSchema {
		return anything
	}
	return out
}

func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(raw), []byte{'{'})
}
