package settings

import "testing"

// One choice stands for two fields of older clients, and either can be sent.
func TestApprovalMode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                            "never",
		`{"confirmation_mode":false}`:   "never",
		`{"security_analyzer":"rules"}`: "never",
		`{"confirmation_mode":true}`:    "always",
		`{"confirmation_mode":true,"security_analyzer":""}`:      "always",
		`{"confirmation_mode":true,"security_analyzer":"rules"}`: "risky",
		`{"confirmation_mode":true,"security_analyzer":"llm"}`:   "risky",
		`{"approval_mode":"always"}`:                             "always",
		`{"approval_mode":"risky"}`:                              "risky",
		`{"approval_mode":"risky","confirmation_mode":false}`:    "risky",
	} {
		s, _, err := update(nil, body)
		if err != nil || View(s).ApprovalMode != want {
			t.Errorf("%s is %s, want %s (%v)", body, View(s).ApprovalMode, want, err)
		}
	}
	risky, _, _ := update(nil, `{"approval_mode":"risky"}`)
	if !risky.Confirms() || deref(risky.SecurityAnalyzer) != "rules" {
		t.Errorf("risky is stored as %v %v", risky.Confirms(), deref(risky.SecurityAnalyzer))
	}
	// A client that changes an older field and sends the rest back as it was given means the field.
	back, _, err := update(&risky, `{"approval_mode":"risky","confirmation_mode":false,"security_analyzer":"rules"}`)
	if err != nil || View(back).ApprovalMode != "never" {
		t.Errorf("the changed field was lost: %s, %v", View(back).ApprovalMode, err)
	}
	// And one that changes the mode means the mode.
	next, _, err := update(&risky, `{"approval_mode":"always","confirmation_mode":true,"security_analyzer":"rules"}`)
	if err != nil || View(next).ApprovalMode != "always" {
		t.Errorf("the changed mode was lost: %s, %v", View(next).ApprovalMode, err)
	}
}
