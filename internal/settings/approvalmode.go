package settings

import "deckhand/api"

// The approval modes: one choice in place of the two fields that older clients send.
const (
	AskAlways = "always"
	AskRisky  = "risky"
	AskNever  = "never"
)

// Approvals is the mode that the two fields amount to. Calls that an analyzer rates wait only if they are risky.
func (p Plain) Approvals() string {
	switch {
	case !p.Confirms():
		return AskNever
	case deref(p.SecurityAnalyzer) == "":
		return AskAlways
	}
	return AskRisky
}

func (p Plain) showApprovals(out *api.Settings) { out.ApprovalMode = p.Approvals() }

// approvals applies the mode after the two fields. A client that sends back what it was given means a change of the field
// that differs, so an unchanged mode leaves the two fields as they are.
func (m *merger) approvals(was string, in api.SettingsInput) {
	mode, ok := in.ApprovalMode.Get()
	if !ok || mode == was {
		return
	}
	analyzer, confirm := "", mode != AskNever
	switch mode {
	case AskAlways:
	case AskRisky:
		analyzer = "rules"
	case AskNever:
		analyzer = deref(m.out.SecurityAnalyzer) // ratings are still shown
	default:
		m.refuse(oneOf([]string{AskAlways, AskRisky, AskNever})(mode), "approval_mode")
		return
	}
	m.out.SecurityAnalyzer, m.out.ConfirmationMode = &analyzer, &confirm
}
