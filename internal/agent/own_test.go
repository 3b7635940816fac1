package agent

import (
	"encoding/json"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/tool/bash"
)

// A rating that is none does not keep a call from being made: it counts as unknown.
func TestInvalidRatingIsUnknown(t *testing.T) {
	t.Parallel()
	spec := bash.Tool{}.Spec()
	var schemas schemas
	for args, want := range map[string]session.Risk{
		`{"command":"ls","security_risk":"LOW"}`:    session.RiskLow,
		`{"command":"ls","security_risk":"banana"}`: session.RiskUnknown,
		`{"command":"ls","security_risk":"low"}`:    session.RiskUnknown,
		`{"command":"ls","security_risk":7}`:        session.RiskUnknown,
		`{"command":"ls","security_risk":null}`:     session.RiskUnknown,
		`{"command":"ls"}`:                          session.RiskUnknown,
	} {
		c := session.ToolCall{Name: bash.Name, Args: json.RawMessage(args)}
		if err := schemas.check(spec, own(spec, c.Args)); err != nil {
			t.Errorf("%s is refused: %v", args, err)
		}
		if got, _ := rate("llm", spec, c, ""); got != want {
			t.Errorf("%s is rated %d", args, got)
		}
	}
}
