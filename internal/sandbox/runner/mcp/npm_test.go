package mcp

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/npmtest"
	"deckhand/internal/sandbox"
)

// Short names of the real servers.
const (
	everything = npmtest.Everything
	filesystem = npmtest.Filesystem
)

// script is the program of a real server.
func script(t *testing.T, pkg string) string {
	t.Helper()
	return npmtest.Program(npmtest.Servers(t, npmtest.Spawned(t, spawner)), pkg)
}

func node(t *testing.T, name, pkg string, args ...string) sandbox.MCPServer {
	return sandbox.MCPServer{Name: name, Command: "node", Args: append([]string{script(t, pkg)}, args...)}
}

func tool(st sandbox.MCPState, name string) *sandbox.MCPTool {
	for i := range st.Tools {
		if st.Tools[i].Name == name {
			return &st.Tools[i]
		}
	}
	return nil
}

func TestEverything(t *testing.T) {
	b := open(t)
	st := b.start(node(t, "everything", everything))
	if !st.Running || st.Version != "2025-11-25" || !strings.Contains(st.Server, "everything") {
		t.Errorf("%+v", st)
	}
	e := tool(st, "echo")
	if e == nil || e.Description == "" || !strings.Contains(string(e.InputSchema), `"message"`) {
		t.Fatalf("there is no tool echo: %+v", st.Tools)
	}
	call := func(name string, args any) sandbox.MCPResult {
		return b.callAs(sandbox.MCPCall{Server: "everything", Tool: name}, args)
	}
	if got := b.text(call("echo", obj{"message": "hello"})); got != "Echo: hello" {
		t.Error(got)
	}
	if got := b.text(call("get-sum", obj{"a": 2, "b": 40})); !strings.Contains(got, "42") {
		t.Error(got)
	}
	// What is not text travels as it was sent.
	var image struct {
		Content []struct{ Type, Data, MimeType string }
	}
	r := call("get-tiny-image", nil)
	if err := json.Unmarshal(r.Result, &image); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	found := false
	for _, c := range image.Content {
		found = found || c.Type == "image" && c.MimeType == "image/png" && len(c.Data) > 100
	}
	if !found {
		t.Errorf("there is no image in %.300s", r.Result)
	}
	// It takes five seconds and tells of its progress; we do not wait so long.
	slow := sandbox.MCPCall{Server: "everything", Tool: "trigger-long-running-operation", Timeout: 300 * time.Millisecond}
	if r := b.callAs(slow, obj{"duration": 5, "steps": 50}); !strings.Contains(r.Error, "did not answer within 300ms") {
		t.Errorf("%+v", r)
	}
	if r := call("no such tool", nil); !strings.Contains(r.Error+string(r.Result), "no such tool") {
		t.Errorf("%+v", r)
	}
	if r := call("echo", obj{"message": 7}); !strings.Contains(r.Error+string(r.Result), "message") {
		t.Errorf("%+v", r)
	}
	if err := b.MCPStop(t.Context(), "everything"); err != nil {
		t.Error(err)
	}
}

func TestFilesystem(t *testing.T) {
	b := open(t)
	st := b.start(node(t, "files", filesystem, b.workspace))
	if tool(st, "write_file") == nil || tool(st, "read_text_file") == nil {
		t.Fatalf("%+v", st.Tools)
	}
	call := func(name string, args any) sandbox.MCPResult {
		return b.callAs(sandbox.MCPCall{Server: "files", Tool: name}, args)
	}
	file := filepath.Join(b.workspace, "größe.txt")
	b.text(call("write_file", obj{"path": file, "content": "one\ntwo <&>\n"}))
	if got := b.file("größe.txt"); got != "one\ntwo <&>\n" {
		t.Errorf("%q", got)
	}
	if got := b.text(call("read_text_file", obj{"path": file})); got != "one\ntwo <&>\n" {
		t.Errorf("%q", got)
	}
	// A refusal is a result: the model is to learn from it.
	r := call("read_text_file", obj{"path": "/etc/passwd"})
	if r.Error != "" || !strings.Contains(string(r.Result), `"isError":true`) {
		t.Errorf("%+v", r)
	}
	// It starts again after it was killed, without an error.
	s, _ := b.host.named("files", false)
	_ = s.live().proc.proc.Signal(syscall.SIGKILL)
	b.until("it is dead", func(st sandbox.MCPState) bool { return !st.Running })
	if got := b.text(call("read_text_file", obj{"path": file})); got != "one\ntwo <&>\n" {
		t.Errorf("%q", got)
	}
	if st := b.only(); st.Starts != 2 || !strings.Contains(st.Exit, "killed") {
		t.Errorf("%+v", st)
	}
}
