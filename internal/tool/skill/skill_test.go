package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/knowledge"
	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
	"deckhand/internal/tool/skill"
)

// noBox fails the test: skills are read without a sandbox.
func noBox(t *testing.T) tool.Box {
	return func(context.Context) (*sandbox.Sandbox, error) {
		t.Error("the sandbox was asked for")
		return nil, sandbox.ErrGone
	}
}

func run(t *testing.T, s *skill.Tool, args string) (tool.Result, error) {
	t.Helper()
	return s.Run(t.Context(), noBox(t), tool.Call{ID: "1", Args: json.RawMessage(args), Session: "c1", Owner: "ann"})
}

func TestSkill(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "ann", "microagents", "skills", "pdf")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"SKILL.md": "---\nname: pdf\ndescription: d\n---\nThe body.", "ref.md": "The reference."} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := &knowledge.Library{Users: dir}
	s := skill.New(func(ctx context.Context, session, owner, name, file string) (string, error) {
		if session != "c1" {
			t.Errorf("it was read for %q", session)
		}
		return l.Skill(ctx, knowledge.Scope{User: owner}, name, file)
	})
	for args, c := range map[string]struct {
		failed bool
		text   string
	}{
		`{"name":"pdf"}`:                   {false, "The body."},
		`{"name":"pdf","file":"ref.md"}`:   {false, "The reference."},
		`{"name":"pdf","file":null}`:       {false, "- ref.md"},
		`{"name":"doc"}`:                   {true, "There are: pdf."},
		`{"name":"pdf","file":"../../x"}`:  {true, "cannot lead out"},
		`{"name":"pdf","file":"other.md"}`: {true, "has no file"},
		`{}`:                               {true, "name is the skill"},
		`{"name":5}`:                       {true, "name must be a string"},
		`nonsense`:                         {true, "not valid JSON"},
	} {
		r, err := run(t, s, args)
		if err != nil || r.Failed != c.failed || !strings.Contains(r.Text, c.text) {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		fatal bool
	}{{fmt.Errorf("read: %w", sandbox.ErrLost), true}, {sandbox.ErrGone, true}, {errors.New("disk at /var/private"), false}} {
		r, err := run(t, skill.New(func(context.Context, string, string, string, string) (string, error) { return "", c.err }), `{"name":"a"}`)
		if c.fatal != errors.Is(err, c.err) || c.fatal == r.Failed || strings.Contains(r.Text, "private") {
			t.Errorf("%v: %+v, %v", c.err, r, err)
		}
	}
}

func TestSpec(t *testing.T) {
	s := skill.New(nil).Spec()
	if s.Name != "skill" || !s.ReadOnly || !s.Harmless || s.Description == "" || !json.Valid(s.Schema) {
		t.Errorf("got %+v", s)
	}
}
