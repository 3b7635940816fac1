package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// request is a message of the Model Context Protocol, as far as we need it.
type request struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Cursor          string            `json:"cursor"`
		ProtocolVersion string            `json:"protocolVersion"`
		Name            string            `json:"name"`
		Arguments       map[string]string `json:"arguments"`
	} `json:"params"`
}

type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
}

// mcp is a tool server on stdin and stdout. Its list of tools has two pages.
func mcp([]string) error {
	fmt.Fprintln(os.Stderr, "the helper serves tools")
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w: %v", errUsage, err)
		}
		if r.ID == nil {
			continue // a notification
		}
		a := answer{Version: "2.0", ID: r.ID}
		if a.Result = serve(r); a.Result == nil {
			a.Error = map[string]any{"code": -32601, "message": "there is no " + r.Method}
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

func serve(r request) any {
	switch r.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": r.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "helper", "version": "1.2.3"},
		}
	case "ping":
		return map[string]any{}
	case "tools/list":
		if r.Params.Cursor == "" {
			return map[string]any{"tools": []any{tool("echo"), tool("env")}, "nextCursor": "more"}
		}
		return map[string]any{"tools": []any{tool("append"), tool("die"), tool("files")}}
	case "tools/call":
		return call(r)
	}
	return nil
}

func tool(name string) any {
	return map[string]any{
		"name": name, "description": "It does " + name + ".",
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}},
	}
}

func call(r request) any {
	text := r.Params.Arguments["text"]
	switch r.Params.Name {
	case "echo":
	case "env":
		text = os.Getenv(text)
	case "append":
		f, err := os.OpenFile(text, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString("called\n")
			f.Close()
		}
		text = fmt.Sprint(err)
	case "files":
		text = strings.Join(inherited(), "\n")
	case "die":
		fmt.Fprintln(os.Stderr, "the helper dies as it was told")
		os.Exit(7)
	default:
		return map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "no such tool"}}}
	}
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}
