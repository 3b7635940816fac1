package knowledge

import (
	"slices"
	"strings"
	"testing"
)

func TestParseOneFile(t *testing.T) {
	m, err := Parse(".openhands/microagents/deploy.md", "---\ntriggers:\n- ship it\n- ' '\n---\nHow to ship.\n")
	if err != nil || m.Name != "deploy" || m.Kind != Knowledge || !slices.Equal(m.Triggers, []string{"ship it"}) || strings.TrimSpace(m.Content) != "How to ship." {
		t.Errorf("%+v %v", m, err)
	}
	if m, err := Parse(".cursorrules", "Use tabs."); err != nil || m.Kind != Repo || m.Triggers != nil || m.Content != "Use tabs." {
		t.Errorf("%+v %v", m, err)
	}
	if m, err := Parse("x.md", "---\ntriggers: [\n---\nx"); err == nil {
		t.Errorf("broken front matter is taken: %+v", m)
	}
	long, err := Parse("x.md", strings.Repeat("x", maxFile+10))
	if err != nil || !strings.Contains(long.Content, "…\n[") || !strings.Contains(long.Content, "longer than what is shown") {
		t.Errorf("%d %v", len(long.Content), err)
	}
}
