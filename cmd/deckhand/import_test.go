package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/takeover"
)

const (
	legacyFolder = "../../internal/takeover/testdata/legacy"
	legacyNewer  = "5f0c0d11e2a34b5c8d7e6f5a4b3c2d1e"
	legacyOlder  = "0530aa11e2a34b5c8d7e6f5a4b3c2d1e"
)

// The whole way: a legacy folder becomes conversations that can be listed, read,
// exported and gone on with. The model is shown all that was said and done, in a form
// that a provider accepts.
func TestImportAndGoOn(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), t.TempDir()
	if err := os.CopyFS(from, os.DirFS(legacyFolder)); err != nil {
		t.Fatal(err)
	}
	// Without its repository, which would be cloned anew from a machine far away.
	meta := filepath.Join(from, "sessions", legacyNewer, "metadata.json")
	text, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer(`"octo/app"`, "null", "[42]", "[]").Replace(string(text)))
	if err := os.WriteFile(meta, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t, "import", "--from", from, "--data-dir", dir, "--timezone", "Europe/Berlin")
	if code != 1 || !strings.Contains(errs, "some data was not imported") { // some settings of it are refused
		t.Fatalf("%d %s%s", code, out, errs)
	}
	holds(t, out, "imported  sessions/"+legacyNewer, "Write the README", "refused: security_analyzer", "3 conversations: 0 already here, 0 failed, 3 imported")

	model := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "It was about a README."}, llmtest.Reply{Text: "A cat."}))
	b := serve(t, dir)
	ctx := t.Context()
	// Everything that would be asked of other machines is taken out again.
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{LLMBaseURL: api.Some(model.URL + "/v1"), LLMAPIKey: api.Some("sk-of-the-test"),
		MCPConfig: api.Null[api.MCPConfig](), SecretsStore: api.Null[api.UserSecrets]()}); err != nil {
		t.Fatal(err)
	}
	page, err := b.client.Conversations(ctx, url.Values{"query": {"readme"}})
	if err != nil || len(page.Results) != 1 || page.Results[0].ConversationID != legacyNewer {
		t.Fatalf("%+v %v", page, err)
	}
	got, err := b.client.Conversation(ctx, legacyNewer)
	if err != nil || got.Status != "STOPPED" || got.Title != "Write the README" || *got.SelectedBranch != "main" || *got.Trigger != "gui" ||
		got.CreatedAt.Format("2006-01-02T15:04:05Z07:00") != "2025-10-01T09:58:00Z" {
		t.Fatalf("%+v %v", got, err)
	}
	_, trajectory, _ := b.raw("GET", "/api/conversations/"+legacyNewer+"/trajectory", "")
	holds(t, trajectory, `"action":"run_ipython"`, `"observation":"user_rejected"`, `"action":"loop_recovery"`, `"agent_class":"CodeActAgent"`)

	for id, told := range map[string][]string{
		legacyNewer: {"Add a README", "Use make.", "make test", "no rule", "execute_ipython_cell", "outcome of this action is unknown", "The README is written.", "Answer in one sentence.", "And now?"},
		legacyOlder: {"What is in the picture?", "An image is attached here", "A cat.", "a.txt", "I have no access.", "And now?"},
	} {
		if err := b.client.Say(ctx, id, "And now?", ""); err != nil {
			t.Fatal(err)
		}
		b.follow(id, 0, agentIs("awaiting_user_input"))
		asked := model.Asked()
		holds(t, string(asked[len(asked)-1].Body), told...)
	}
	if wrong := model.Complaints(); len(wrong) > 0 {
		t.Errorf("a provider would have refused it: %q", wrong)
	}
	if n := len(model.Asked()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// Beside a running server: it sees settings and conversations at once.
func TestImportBesideServer(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	ctx := t.Context()
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{Language: api.Some("de")}); err != nil {
		t.Fatal(err)
	}
	if s, err := b.client.Settings(ctx); err != nil || s.LLMAPIKeySet { // and now it has read them
		t.Fatalf("%+v %v", s, err)
	}
	code, out, errs := command(t, "import", "--from", legacyFolder, "--data-dir", b.dir, "--json")
	var report takeover.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || errs != "" {
		t.Fatalf("%d %s%s %v", code, out, errs, err)
	}
	if len(report.Conversations) != 3 || !slices.Contains(report.Settings.Kept, "language") || len(report.Settings.Refused) != 5 {
		t.Errorf("%+v", report)
	}
	s, err := b.client.Settings(ctx)
	if err != nil || !s.LLMAPIKeySet || *s.Language != "de" || s.ProviderTokensSet["gitlab"] == nil {
		t.Errorf("%+v %v", s, err)
	}
	got, err := b.client.Conversation(ctx, legacyNewer)
	if err != nil || *got.SelectedRepository != "octo/app" || !slices.Equal(got.PRNumber, []int{42}) {
		t.Errorf("%+v %v", got, err)
	}
	if strings.Contains(out, "canary") || strings.Contains(b.logs.String(), "canary") {
		t.Error("a secret was printed")
	}
}

func TestImportUsage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "--from"}, {[]string{"--from", dir}, "--from"}, {[]string{"--from", t.TempDir()}, "no legacy server data"},
		{[]string{"--from", legacyFolder, "--timezone", "Middle/Earth"}, "--timezone"}, {[]string{"--from", legacyFolder, "--legacy-user", ".."}, "--legacy-user"},
		{[]string{"--from", legacyFolder, "--user", "bob"}, "deckhand user create bob"},
	} {
		refuses(t, append([]string{"import", "--data-dir", t.TempDir()}, c.args...), c.says)
	}
	if _, out, _ := command(t, "import", "--from", legacyFolder, "--data-dir", dir, "--dry-run"); !strings.Contains(out, "nothing was stored") {
		t.Error(out)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a dry run makes a data dir")
	}
}

// An import that is killed leaves whole conversations or none, and the next one does the rest.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), t.TempDir()
	const conversations, events = 40, 30
	for c := range conversations {
		for e := range events {
			file := filepath.Join(from, "sessions", fmt.Sprintf("c%02d", c), "events", fmt.Sprint(e, ".json"))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf(`{"id":%d,"timestamp":"2025-01-01T10:00:00.%06d","source":"user","message":"m","action":"message","args":{"content":"message %d"}}`, e, e, e)
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(from, "sessions", fmt.Sprintf("c%02d", c), "metadata.json"), []byte(`{}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := process("import", "--from", from, "--data-dir", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "sessions/c03") {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	var report takeover.Report
	if err := json.Unmarshal([]byte(must(t, "import", "--from", from, "--data-dir", dir, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	before, after := report.Count(takeover.Present), report.Count(takeover.Imported)
	if before < 4 || before+after != conversations {
		t.Errorf("%d were there and %d are new", before, after)
	}
	b := serve(t, dir)
	for c := range conversations {
		page, err := b.client.LegacyEvents(t.Context(), fmt.Sprintf("c%02d", c), url.Values{"limit": {"100"}})
		if err != nil || len(page.Events) != events+2 { // and that it was created and stopped
			t.Fatalf("c%02d has %d events: %v", c, len(page.Events), err)
		}
	}
}

// docs/migrating.md says what became of each known defect.
func TestMigratingPageListsDefects(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 34; n++ {
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d |", n)) {
			t.Errorf("the table of differences has no row %d", n)
		}
	}
}
