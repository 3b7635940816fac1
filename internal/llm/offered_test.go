package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sendTools writes a request with these tools, for a conversation of its own.
func sendTools(wire string, tools ...Tool) (sent string, kept *Written) {
	kept = &Written{}
	b := NewBody(&Request{Tools: tools, Written: kept}, wire)
	b.Raw(`{"model":"m"`)
	b.Tools(func() {
		b.Raw(`,"tools":[`)
		for _, t := range tools {
			b.Item("")
			b.Encode(t.Name + wire)
		}
		b.Raw("]")
	})
	b.Raw("}")
	var all strings.Builder
	for _, p := range b.Parts() {
		all.Write(p)
	}
	return all.String(), kept
}

// Conversations with the same tools keep one copy of them, and only those.
func TestToolsAreKeptOnce(t *testing.T) {
	name := Tool{Name: t.Name(), Description: "one", Schema: json.RawMessage(`{}`)}
	sent, first := sendTools("x", name)
	again, second := sendTools("x", name)
	if want := `{"model":"m","tools":["` + t.Name() + `x"]}`; sent != want || again != want {
		t.Errorf("%s and %s, want %s", sent, again, want)
	}
	if &first.offered[0] != &second.offered[0] {
		t.Error("the same tools were kept twice")
	}
	other := name
	other.Description = "two"
	for what, kept := range map[string]*Written{"description": writtenOf(sendTools("x", other)), "wire": writtenOf(sendTools("y", name))} {
		if &first.offered[0] == &kept.offered[0] {
			t.Errorf("tools with another %s were taken for the same", what)
		}
	}
}

func writtenOf(_ string, w *Written) *Written { return w }

// Many different sets of tools do not pile up.
func TestKeptToolsAreBounded(t *testing.T) {
	for i := range 3 * maxLately {
		sendTools("x", Tool{Name: fmt.Sprint(t.Name(), i)})
	}
	lately.mu.Lock()
	defer lately.mu.Unlock()
	if len(lately.all) > maxLately {
		t.Errorf("%d sets are kept", len(lately.all))
	}
}
