package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wire "deckhand/api/health"
	"deckhand/client"
	"deckhand/internal/activity"
	"deckhand/internal/admission"
	"deckhand/internal/health"
	"deckhand/internal/notify"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// withBoard gives a rig of sandboxes the health of the server.
func withBoard(t *testing.T, change func(*health.Config)) *sandboxRig {
	t.Helper()
	var h *sandboxRig
	var board boardOf
	level := &slog.LevelVar{}
	h = newSandboxRig(t, tune{config: func(c *Config) {
		c.Server.Board, c.Server.Level = &board, level
		c.Logger = slog.New(slog.NewJSONHandler(&logBuffer{}, &slog.HandlerOptions{Level: level}))
	}})
	c := health.Config{Version: "test", DataDir: t.TempDir(), Ready: func(context.Context) error { return nil }, Database: func(context.Context) (string, error) { return "SQLite 3", nil }, Keeper: h.keeper, Conversations: h.api.Conversations.Service,
		Admission: admission.New(admission.Limits{Running: 1, RunningPerUser: 1, Queued: 1, QueuedPerUser: 1}), Activity: activity.New(func(string) string { return "acme" }), Git: &activity.Hosts{}, Working: func() int { return 1 }, Waiting: func() int { return 2 },
		Requests: func() int { return 3 }, Streams: func() int { return 4 }, Notified: func() notify.Stats { return notify.Stats{} }, Level: level, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	board.Board = health.New(c)
	return h
}

// boardOf is a board that is made after the API.
type boardOf struct{ *health.Board }

func (h *sandboxRig) health() wire.ServerHealth {
	h.t.Helper()
	out, err := h.as("admin").ServerHealth(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// An admin sees the sandboxes of all users with what they use, and ends one: the conversation is stopped and says
// why, its files stay, and it can be continued.
func TestAdminEndsASandbox(t *testing.T) {
	h := withBoard(t, nil)
	id, box := h.begun()
	if _, err := box.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.InWorkspace("kept")}, strings.NewReader("kept")); err != nil {
		t.Fatal(err)
	}
	seen := h.health()
	if seen.Sandboxes.Total != 1 || len(seen.Sandboxes.Running) != 1 || seen.Queue.Waiting != 2 || seen.Queue.Streams != 4 {
		t.Fatalf("got %+v", seen)
	}
	use := seen.Sandboxes.Running[0]
	if use.ConversationID != id || use.User != "ada" || use.Memory == nil || *use.Memory <= 0 || use.Processes == nil || *use.Processes < 1 || use.MemoryLimit <= 0 {
		t.Errorf("got %+v", use)
	}
	if text, _ := json.Marshal(seen); strings.Contains(string(text), "title") {
		t.Error("an admin sees titles of others")
	}
	if err := h.as("admin").EndSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	<-box.Done()
	st, err := h.sessions.Load(t.Context(), session.ID(id))
	if err != nil || st.Status() != session.Halted {
		t.Fatalf("the conversation is %v, %v", st.Status(), err)
	}
	said := ""
	for _, e := range h.events(id) {
		if p, ok := e.(session.Stopped); ok {
			said = p.Reason
		}
	}
	if said != health.EndedByAdmin {
		t.Errorf("the conversation says %q", said)
	}
	if err := h.as("admin").EndSandbox(t.Context(), id); err != nil { // a second click
		t.Error(err)
	}
	again, release, err := h.keeper.Use(t.Context(), session.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var got strings.Builder
	if _, err := again.Read(t.Context(), sandbox.ReadParams{PathParams: sandbox.InWorkspace("kept")}, &got); err != nil || got.String() != "kept" {
		t.Errorf("the file is %q, %v", got.String(), err)
	}
}

// Only admins see the health of the server and change it, and mistakes are named.
func TestServerHealthIsForAdmins(t *testing.T) {
	h := withBoard(t, nil)
	id, box := h.begun()
	for _, c := range [][3]string{{"GET", "/api/admin/health", ""}, {"POST", "/api/admin/sandboxes/" + id + "/end", ""}, {"PUT", "/api/admin/log-level", `{"level":"debug"}`}} {
		h.rig.as("ada", c[0], c[1], c[2]).want(t, 403)
		h.do(c[0], c[1], c[2], "X-Session-API-Key", "").want(t, 401)
	}
	select {
	case <-box.Done():
		t.Error("a user ended a sandbox")
	default:
	}
	h.rig.as("admin", "POST", "/api/admin/sandboxes/nobody/end", "").want(t, 404)
	h.rig.as("admin", "POST", "/api/admin/sandboxes/a%20b/end", "").want(t, 422, "conversation_id")
	h.rig.as("admin", "PUT", "/api/admin/log-level", `{"level":"loud"}`).want(t, 422, "level", "debug")
	if h.health().LogLevel != "info" {
		t.Error("the log level was changed")
	}
	if err := h.as("admin").SetLogLevel(t.Context(), "debug"); err != nil || h.api.Server.Level.Level() != slog.LevelDebug {
		t.Errorf("the log level is %s, %v", h.api.Server.Level.Level(), err)
	}
	var fault *client.Error
	if err := h.as("ada").EndSandbox(t.Context(), id); !errors.As(err, &fault) || fault.Status != 403 {
		t.Errorf("got %v", err)
	}
}

// Each problem has a part that says it, and the worst decides about the whole.
func TestProblemsOfParts(t *testing.T) {
	h := withBoard(t, func(c *health.Config) {
		c.Ready = func(context.Context) error { return errors.New("disk I/O error") }
		c.SignOn = func(context.Context) error { return errors.New("no such issuer") }
		c.Notified = func() notify.Stats { return notify.Stats{Delivered: 1, Failed: 5} }
		old := time.Now().Add(-30 * 24 * time.Hour)
		file := filepath.Join(c.DataDir, "last-backup")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, old, old)); err != nil {
			t.Fatal(err)
		}
	})
	seen := h.health()
	if seen.Status != health.Failed || seen.LastBackupAt == nil || time.Since(*seen.LastBackupAt) < 29*24*time.Hour || len(seen.Disks) == 0 {
		t.Errorf("got %+v", seen)
	}
	got := map[string]string{}
	for _, p := range seen.Parts {
		got[p.ID] = p.Problem
		if (p.Problem != "") != (p.Message != "") {
			t.Errorf("%s has a problem without advice: %+v", p.ID, p)
		}
	}
	for part, problem := range map[string]string{"database": "database_failing", "sandbox": "", "sign_on": "sign_on_failing", "notifications": "notify_failing", "backup": "backup_old", "model": "", "git": ""} {
		if have, there := got[part]; !there || have != problem {
			t.Errorf("%s says %q, wanted %q", part, have, problem)
		}
	}
}

// Every problem has a text in every language of the web page.
func TestProblemsAreTranslated(t *testing.T) {
	files, err := filepath.Glob("../../web/src/locales/*/health.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d languages, %v", len(files), err)
	}
	for _, file := range files {
		var texts map[string]string
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &texts)
		}
		if err != nil {
			t.Fatal(err)
		}
		for problem := range health.Problems {
			if texts["health.problem."+problem] == "" {
				t.Errorf("%s has no text for %s", file, problem)
			}
		}
		for key := range texts {
			if problem, ok := strings.CutPrefix(key, "health.problem."); ok && health.Problems[problem] == "" {
				t.Errorf("%s has a text for %s, which does not occur", file, problem)
			}
		}
	}
}
