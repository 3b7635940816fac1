package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
)

// exported is an entry of a forged file.
type exported struct{ name, content, link string }

// writeExport writes a file as export does, and calls pause before the digest, with what is before it flushed.
func writeExport(w io.Writer, pause func(), entries ...exported) error {
	zip := gzip.NewWriter(w)
	out, sum := tar.NewWriter(zip), sha256.New()
	add := func(e exported) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Linkname: e.link, Mode: 0o644, Size: int64(len(e.content))}
		if e.link != "" {
			h.Typeflag = tar.TypeSymlink
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %c %o %q %d\n%s", h.Name, h.Typeflag, h.Mode&0o777, h.Linkname, h.Size, e.content)
		_, err := io.WriteString(out, e.content)
		return err
	}
	for _, e := range entries {
		if err := add(e); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := zip.Flush(); err != nil {
		return err
	}
	pause()
	if err := add(exported{name: "SHA256", content: hex.EncodeToString(sum.Sum(nil))}); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// about is the beginning of a forged file with these settings.
func about(settings string) []exported {
	return []exported{
		{name: "deckhand.json", content: `{"format":"deckhand-conversation","version":1,"id":"x","title":"A task","created_at":"2026-01-02T03:04:05Z","repository":"octo/app","settings":` + settings + `}`},
		{name: "trajectory/000001.jsonl", content: `{"id":1,"source":"user","action":"message","args":{"content":"Hello"},"timestamp":"2026-01-02T03:04:05"}` + "\n"},
	}
}

// An export has the settings of the conversation without secrets. An import reports those that loosen a limit or need a decision.
func TestExportedSettings(t *testing.T) {
	t.Parallel()
	a := serve(t, "")
	a.demo("scripted/demo")
	id := a.create("Hello")
	a.follow(id, 0, agentIs("awaiting_user_input"))
	remote := func(url, key string) api.MCPServer { return api.MCPServer{URL: url, APIKey: &key} }
	servers := api.MCPConfig{
		SSEServers:   []api.MCPServer{},
		SHTTPServers: []api.MCPServer{remote("http://127.0.0.1:9/canary-path?key=canary-query", "canary-key"), remote("http://127.0.0.1:8/known", "canary-known")},
		StdioServers: []api.StdioServer{{Name: "notes", Command: "notes-server", Args: []string{"--token=canary-argument"}, Env: map[string]string{"KEY": "canary-variable"}}},
	}
	if _, err := a.client.StoreSettings(t.Context(), api.SettingsInput{MCPConfig: api.Some(servers), Agent: api.Some("ReadOnlyAgent"), MaxIterations: api.Some(33)}); err != nil {
		t.Fatal(err)
	}
	chosen := api.SetOverrides{LLMModel: api.Some("scripted/slow"), MaxBudgetPerTask: api.Some(0.5), PlanMode: api.Some(true), Approval: api.Some("always"), ReasoningEffort: api.Some("low")}
	if _, err := a.client.SetOverrides(t.Context(), id, chosen); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := a.client.Export(t.Context(), id, &file); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(zip); err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("secrets travel: %v\n%s", err, text)
	}

	b := serve(t, "")
	b.demo("scripted/demo")
	known := api.MCPConfig{SSEServers: []api.MCPServer{}, StdioServers: []api.StdioServer{}, SHTTPServers: []api.MCPServer{remote("http://127.0.0.1:8/mine", "mine")}}
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{MCPConfig: api.Some(known), ConfirmationMode: api.Some(false), MaxBudgetPerTask: api.Some(2.0)}); err != nil {
		t.Fatal(err)
	}
	made, err := b.client.ImportConversation(t.Context(), &file)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"llm_model", "reasoning_effort", "plan_mode", "max_budget_per_task", "approval"}; !slices.Equal(made.AppliedSettings, want) {
		t.Errorf("applied %q", made.AppliedSettings)
	}
	has, err := b.client.Overrides(t.Context(), made.ConversationID)
	if err != nil || !has.PlanMode || *has.LLMModel != "scripted/slow" || *has.MaxBudgetPerTask != 0.5 || *has.Approval != "always" || *has.ReasoningEffort != "low" {
		t.Errorf("%+v %v", has, err)
	}
	skipped := fmt.Sprint(made.SkippedSettings)
	holds(t, skipped, "{agent ", `"ReadOnlyAgent"`, "{max_iterations ", "33", "http://127.0.0.1:9", `"notes" (stdio)`, "enter its secrets again")
	if len(made.SkippedSettings) != 4 || strings.Contains(skipped, "canary") {
		t.Errorf("skipped %s", skipped)
	}

	// Settings that a file must not apply.
	for settings, want := range map[string]string{
		`{"approval":"never"}`:            "", // the same as the settings
		`{"approval":"whatever"}`:         "{approval The file has an unknown approval mode.}",
		`{"max_budget_per_task":1000000}`: "{max_budget_per_task The budget was 1000000.00 USD. Your limit of 2.00 USD applies.}",
		`{"max_budget_per_task":-1}`:      "{max_budget_per_task The file has an invalid budget.}",
		`{"llm_model":"unknown/model"}`:   "{llm_model ",
		`{"reasoning_effort":"extreme"}`:  "{reasoning_effort ",
		`{"mcp_servers":[{"kind":"shttp","address":"http://evil.example\u001b"}]}`: `"http://evil.example\x1b"`,
	} {
		var forged bytes.Buffer
		if err := writeExport(&forged, func() {}, about(settings)...); err != nil {
			t.Fatal(err)
		}
		made, err := b.client.ImportConversation(t.Context(), &forged)
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		skipped := fmt.Sprint(made.SkippedSettings)
		if len(made.AppliedSettings) > 0 || !strings.Contains(skipped, want) || !strings.Contains(skipped, `{repository The files of "octo/app"`) {
			t.Errorf("%s: applied %q, skipped %s", settings, made.AppliedSettings, skipped)
		}
	}
}

// Links that cannot be created are reported, and only those.
func TestImportedLinks(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	long := "workspace/" + strings.Repeat("n", 300)
	var file bytes.Buffer
	entries := append(about("{}"), exported{name: "workspace/kept", content: "text"}, exported{name: "workspace/first", link: "kept"}, exported{name: long, link: "kept"}, exported{name: "workspace/last", link: "nowhere"})
	if err := writeExport(&file, func() {}, entries...); err != nil {
		t.Fatal(err)
	}
	made, err := b.client.ImportConversation(t.Context(), &file)
	if err != nil || made.Files != 4 || !slices.Equal(made.SkippedLinks, []string{strings.TrimPrefix(long, "workspace/")}) {
		t.Errorf("%+v %v", made, err)
	}
	b.remove(made.ConversationID)
}

// A conversation that exceeds the limits of an import is not exported.
func TestExportTooLarge(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("$ truncate -s 5G hole; echo it is large")
	b.said(id, 0, "it is large")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	status, text, _ := b.raw(http.MethodGet, "/api/conversations/"+id+"/export", "")
	if status != http.StatusConflict || !strings.Contains(text, "larger than 4 GiB") || !strings.Contains(text, "node_modules") {
		t.Errorf("%d %s", status, clipTail(text, 1000))
	}
	b.remove(id)
}

// A server that was killed during an import deletes its conversation when it starts again.
func TestUnfinishedImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, server := spawn(t, dir)
	b.demo("scripted/demo")
	file, w := io.Pipe()
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() {
		_ = w.CloseWithError(writeExport(w, func() { close(begun); <-end }, append(about("{}"), exported{name: "workspace/kept", content: "text"})...))
	}()
	answered := make(chan error, 1)
	go func() {
		_, err := b.client.ImportConversation(t.Context(), file)
		answered <- err
	}()
	<-begun
	list := func(b *box) []api.Conversation {
		page, err := b.client.Conversations(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return page.Results
	}
	b.until("the conversation is listed", func() bool {
		all := list(b)
		return len(all) == 1 && strings.HasSuffix(all[0].Title, "(import not finished)")
	})
	_ = server.Process.Kill()
	_ = server.Wait()
	_ = file.CloseWithError(io.ErrClosedPipe)
	if err := <-answered; err == nil {
		t.Error("the import is finished")
	}
	again, _ := spawn(t, dir)
	again.until("the conversation is deleted", func() bool { return len(list(again)) == 0 })
	again.until("the record is removed", func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "imports"))
		return err == nil && len(left) == 0
	})
}
