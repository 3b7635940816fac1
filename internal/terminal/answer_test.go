package terminal

import (
	"strings"
	"testing"

	"deckhand/internal/session"
)

func TestOneKeyNeverApprovesHighRisk(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		low, high Answer
		lowOK     bool
		highOK    bool
	}{
		"y":       {Approve, 0, true, false},
		"Y":       {Approve, 0, true, false},
		"yes":     {Approve, Approve, true, true},
		"a":       {Always, 0, true, false},
		"always":  {Always, Always, true, true},
		"n":       {AskReason, AskReason, true, true},
		"no":      {AskReason, AskReason, true, true},
		"n later": {Reject, Reject, true, true},
		"e":       {EditCall, EditCall, true, true},
		"":        {0, 0, false, false},
		"yes sir": {0, 0, false, false},
		"1":       {0, 0, false, false},
	} {
		for _, risk := range []session.Risk{session.RiskLow, session.RiskMedium, session.RiskUnknown} {
			if got, _, err := (Question{Risk: risk, Pattern: "p"}).Parse(text); (err == nil) != want.lowOK || err == nil && got != want.low {
				t.Errorf("%q at risk %v: %v, %v", text, risk, got, err)
			}
		}
		if got, _, err := (Question{Risk: session.RiskHigh, Pattern: "p"}).Parse(text); (err == nil) != want.highOK || err == nil && got != want.high {
			t.Errorf("%q at high risk: %v, %v", text, got, err)
		}
	}
	if _, _, err := (Question{}).Parse("a"); err == nil {
		t.Error("always is accepted without a pattern")
	}
	if _, _, err := (Question{Risk: session.RiskHigh}).Parse("ok"); err == nil || !strings.Contains(err.Error(), "the whole word yes") {
		t.Errorf("%v", err)
	}
	if _, why, _ := (Question{}).Parse("n  not now "); why != "not now" {
		t.Errorf("%q", why)
	}
}
