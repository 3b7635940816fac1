package agent

import (
	_ "embed"
	"strings"
	"unique"
)

var (
	//go:embed prompt.md
	prompt string
	//go:embed prompt_readonly.md
	promptReadOnly string
	//go:embed prompt_plan.md
	promptPlan string
	//go:embed prompt_browsing.md
	promptBrowsing string
)

// SystemInput is the input of the system prompt.
type SystemInput struct {
	// Agent is a name that /api/options/agents lists. Those without a prompt of
	// their own get that of the CodeActAgent.
	Agent string
	// Language is a tag such as de or pt-BR; empty means that of the user's messages.
	Language string
	// RateCalls asks the model to rate the risk of its calls.
	RateCalls bool
	Plan      bool // asks for a plan in place of the work
}

// riskSection is the part of the prompt that only models need that rate their calls.
const riskSection = "SECURITY_RISK_ASSESSMENT"

// System is what the model is told before anything else. It depends on
// nothing but its input, so that providers can cache it.
func System(in SystemInput) string {
	s := prompt
	switch {
	case in.Plan:
		s = promptPlan
	case in.Agent == "ReadOnlyAgent":
		s = promptReadOnly
	case in.Agent == "BrowsingAgent":
		s = promptBrowsing
	}
	if in.RateCalls {
		if !strings.Contains(s, "<"+riskSection+">") {
			s = strings.TrimSpace(s) + "\n\n" + section(prompt, riskSection)
		}
	} else {
		s = strings.Replace(s, section(s, riskSection), "", 1)
	}
	s = strings.TrimSpace(s)
	if in.Language != "" {
		s += "\n\nAnswer in the language with the tag " + in.Language + "."
	}
	return unique.Make(s).Value() // most conversations have the same one, and keep it
}

// section is a part of the prompt, from its tag to the blank line after it;
// empty if there is none.
func section(s, name string) string {
	end := "</" + name + ">\n\n"
	from, to := strings.Index(s, "<"+name+">"), strings.Index(s, end)
	if from < 0 || to < 0 {
		return ""
	}
	return s[from : to+len(end)]
}
