package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// A conversation goes on at another installation: it belongs to the user who imports it, the model sees what was said and done, and
// the files are there. Secrets do not travel, and a damaged file leaves nothing.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	a := serve(t, "", withSandbox(t, "local")...)
	a.demo("scripted/demo")
	if err := a.client.CreateSecret(t.Context(), api.CreateSecret{Name: "TOKEN", Value: "canary-of-a-secret"}); err != nil {
		t.Fatal(err)
	}
	id := a.create("$ mkdir -p sub/empty; echo one-two-three > sub/kept; printf '#!/bin/sh\\necho tool-ran' > tool; chmod 755 tool; ln -s sub/kept link; echo said-$TOKEN")
	a.said(id, 0, "said-")
	a.follow(id, 0, agentIs("awaiting_user_input"))
	if err := a.client.Rename(t.Context(), id, "Three numbers"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "task.tar.gz")
	if code, out, errs := a.beside("export", id[:12], "-o", file); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if code, _, errs := a.beside("export", id, "-o", file); code != 1 || !strings.Contains(errs, "choose another name") {
		t.Errorf("%d %s", code, errs)
	}
	stranger := a.userOf("stranger", "theirs")
	if err := stranger.client.Export(t.Context(), id, &bytes.Buffer{}); statusOf(err) != http.StatusNotFound {
		t.Errorf("another user exports it: %v", err)
	}
	a.remove(id)

	b := serve(t, "", withSandbox(t, "local")...)
	model := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "It was about numbers."}))
	ada := b.userOf("ada", "hers")
	if _, err := ada.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("openai/gpt-4o"), LLMBaseURL: api.Some(model.URL + "/v1"), LLMAPIKey: api.Some("sk-of-the-test")}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{whole[:len(whole)/2], append(bytes.Clone(whole[:len(whole)-200]), whole[:200]...), []byte("nothing")} {
		if _, err := ada.client.ImportConversation(t.Context(), bytes.NewReader(damaged)); statusOf(err) != http.StatusUnprocessableEntity {
			t.Errorf("a damaged file: %v", err)
		}
	}
	if page, err := ada.client.Conversations(t.Context(), nil); err != nil || len(page.Results) != 0 {
		t.Errorf("left of damaged files: %+v %v", page.Results, err)
	}
	keys := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keys, []byte(ada.key), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := b.beside("import", file, "--key-file", keys)
	if code != 0 || !strings.HasPrefix(out, "imported ") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	page, err := ada.client.Conversations(t.Context(), nil)
	if err != nil || len(page.Results) != 1 || page.Results[0].Title != "Three numbers" {
		t.Fatalf("%+v %v", page.Results, err)
	}
	made := page.Results[0].ConversationID
	if err := ada.client.Say(t.Context(), made, "What was it about?", ""); err != nil {
		t.Fatal(err)
	}
	// The history has earlier answers and states.
	seen := ada.follow(made, 0, func(it client.LegacyItem) bool { return strings.Contains(string(it.Raw), "It was about numbers.") })
	seen = append(seen, ada.follow(made, seen[len(seen)-1].ID, agentIs("awaiting_user_input"))...)
	asked := model.Asked()
	holds(t, string(asked[len(asked)-1].Body), "mkdir -p sub/empty", "said-", "What was it about?")
	for _, text := range []string{string(asked[len(asked)-1].Body), describe(seen), string(whole)} {
		if strings.Contains(text, "canary-of-a-secret") {
			t.Errorf("the secret travels:\n%s", text)
		}
	}
	ada.demo("scripted/demo")
	if err := ada.client.Say(t.Context(), made, "$ cat link; ./tool; readlink link; ls -d sub/empty", ""); err != nil {
		t.Fatal(err)
	}
	got := ada.said(made, seen[len(seen)-1].ID, "one-two-three")
	holds(t, got, "one-two-three", "tool-ran", "sub/kept", "sub/empty")
	ada.remove(made)
}
