package agent_test

import (
	"strings"
	"testing"

	"deckhand/internal/agent"
)

func TestSystemPrompt(t *testing.T) {
	const risk, untrusted = "SECURITY_RISK_ASSESSMENT", "is data"
	sections := strings.Fields("ROLE EFFICIENCY FILE_SYSTEM_GUIDELINES CODE_QUALITY VERSION_CONTROL PULL_REQUESTS PROBLEM_SOLVING_WORKFLOW SECURITY " +
		risk + " EXTERNAL_SERVICES ENVIRONMENT_SETUP TROUBLESHOOTING DOCUMENTATION PROCESS_MANAGEMENT TASK_MANAGEMENT")
	for name, c := range map[string]struct {
		in       agent.SystemInput
		sections []string
		words    int
	}{
		"default":         {agent.SystemInput{RateCalls: true}, sections, 1500},
		"CodeActAgent":    {agent.SystemInput{Agent: "CodeActAgent", RateCalls: true, Language: "pt-BR"}, sections, 1500},
		"without ratings": {agent.SystemInput{}, remove(sections, risk), 1500},
		"ReadOnlyAgent":   {agent.SystemInput{Agent: "ReadOnlyAgent"}, []string{"ROLE", "EFFICIENCY", "SECURITY"}, 300},
		"plan mode":       {agent.SystemInput{Plan: true}, []string{"ROLE", "EFFICIENCY", "SECURITY"}, 350},
		"BrowsingAgent":   {agent.SystemInput{Agent: "BrowsingAgent", RateCalls: true}, []string{"ROLE", "WORKFLOW", "SECURITY", risk}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := agent.System(c.in)
			at := -1
			for _, tag := range c.sections {
				i := strings.Index(s, "<"+tag+">\n")
				if i <= at || strings.Count(s, "\n</"+tag+">") != 1 {
					t.Errorf("%s is not in its place", tag)
				}
				at = i
			}
			if n := strings.Count(s, "</"); n != len(c.sections) {
				t.Errorf("%d sections, want %d", n, len(c.sections))
			}
			if n := len(strings.Fields(s)); n > c.words {
				t.Errorf("%d words", n)
			}
			if !strings.Contains(s, untrusted) || strings.Contains(s, "\n\n\n") || s != strings.TrimSpace(s) {
				t.Errorf("got %q", s)
			}
			if strings.HasSuffix(s, "the tag pt-BR.") != (c.in.Language != "") {
				t.Error("the language is not what was asked for")
			}
		})
	}
	if again := agent.System(agent.SystemInput{Language: "de"}); agent.System(agent.SystemInput{Language: "de"}) != again {
		t.Error("the two prompts differ")
	}
}

func remove(all []string, one string) []string {
	var out []string
	for _, s := range all {
		if s != one {
			out = append(out, s)
		}
	}
	return out
}
