package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
)

const (
	// maxPages bounds a list of tools that does not end.
	maxPages = 100
	maxTools = 10_000
)

// handshake agrees on a version. It returns that, and what the server calls itself.
func (s *session) handshake(ctx context.Context) (version, server string, err error) {
	b, err := s.call(ctx, "initialize", map[string]any{
		"protocolVersion": versions[0],
		"capabilities":    struct{}{},
		"clientInfo":      map[string]string{"name": "deckhand", "version": "1"},
	})
	if err != nil {
		return "", "", err
	}
	var answer struct {
		Version string `json:"protocolVersion"`
		Info    struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"serverInfo"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return "", "", fmt.Errorf("its answer to initialize cannot be understood: %w", err)
	}
	if !slices.Contains(versions, answer.Version) {
		return "", "", fmt.Errorf("it speaks version %q of the protocol, which is not known here (known are %s)", answer.Version, strings.Join(versions, ", "))
	}
	s.notify("notifications/initialized", struct{}{})
	return answer.Version, strings.TrimSpace(answer.Info.Name + " " + answer.Info.Version), nil
}

// list asks for all tools.
func (s *session) list(ctx context.Context) ([]sandbox.MCPTool, error) {
	tools, cursor := []sandbox.MCPTool{}, ""
	for range maxPages {
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		b, err := s.call(ctx, "tools/list", params)
		if p := (*problem)(nil); errors.As(err, &p) && p.Code == noSuchMethod {
			return tools, nil // it has other things to offer
		}
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []sandbox.MCPTool `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, fmt.Errorf("its list of tools cannot be understood: %w", err)
		}
		for _, t := range page.Tools {
			if t.Name == "" {
				continue
			}
			if len(t.InputSchema) == 0 || string(t.InputSchema) == "null" {
				t.InputSchema = json.RawMessage(`{"type":"object"}`)
			}
			tools = append(tools, t)
		}
		if page.Next == "" {
			return tools, nil
		}
		if page.Next == cursor || len(tools) > maxTools {
			break
		}
		cursor = page.Next
	}
	return nil, errors.New("its list of tools does not end")
}
