package httpapi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deckhand/api"
	"deckhand/internal/knowledge"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// libraryOf is what the server gives the API: a library that looks into workspaces.
func libraryOf(h *sandboxRig, l *knowledge.Library) func(context.Context, string, session.ID) ([]api.Microagent, error) {
	return func(ctx context.Context, user string, id session.ID) ([]api.Microagent, error) {
		s := knowledge.Scope{User: user}
		v, err := h.keeper.View(ctx, id)
		if err == nil {
			defer v.Close()
			s.Repo = v.FS(ctx)
		} else if !errors.Is(err, workspace.ErrNone) {
			return nil, err
		}
		found, err := l.List(ctx, s)
		var out []api.Microagent
		for _, m := range found {
			out = append(out, api.Microagent{Name: m.Name, Type: string(m.Kind), Content: m.Content, Triggers: m.Triggers})
		}
		return out, err
	}
}

func TestMicroagents(t *testing.T) {
	users := t.TempDir()
	own := filepath.Join(users, "ada", "microagents")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "mine.md"), []byte("ada's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newSandboxRig(t)
	h.api.conversations.Microagents = libraryOf(h, &knowledge.Library{Users: users})
	names := func(t *testing.T, h *sandboxRig, id string) map[string]string {
		t.Helper()
		found, err := h.client.Microagents(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, m := range found {
			out[m.Name] = m.Type + " " + m.Content
			if m.Triggers == nil || m.Inputs == nil || m.Tools == nil {
				t.Errorf("%s has null where a list should be", m.Name)
			}
		}
		return out
	}
	fresh := h.create(`{}`)
	if got := names(t, h, fresh); got["mine"] != "repo ada's own" || got["AGENTS"] != "" {
		t.Errorf("before there is a workspace: %q", got)
	}
	h.asleep(fresh)
	h.both(t, func(id string) {
		h.put(id, "AGENTS.md", "Use make.")
		h.put(id, ".openhands/microagents/deep/docker.md", "---\ntriggers: [docker]\n---\nContainers.")
		h.link(id, ".cursorrules", "/etc/passwd")
	}, func(t *testing.T, h *sandboxRig, id string) {
		got := names(t, h, id)
		if got["AGENTS"] != "repo Use make." || got["deep/docker"] != "knowledge Containers." || got["mine"] == "" || got[".cursorrules"] != "" {
			t.Errorf("got %q", got)
		}
		_, err := h.as("bob").Microagents(t.Context(), id)
		refused(t, err, 404, "Conversation not found")
	})
	_, err := h.client.Microagents(t.Context(), "nobody")
	refused(t, err, 404, "Conversation not found")
}

func TestMicroagentsWithoutALibrary(t *testing.T) {
	h := newSandboxRig(t)
	h.do("GET", "/api/conversations/"+h.create(`{}`)+"/microagents", "").want(t, 200, `{"microagents":[]}`)
}
