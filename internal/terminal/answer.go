package terminal

import (
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/session"
)

// Answer is how a person answers the question whether a tool call may be made.
type Answer int

// The answers.
const (
	Approve   Answer = iota
	Always           // approve this call and all like it
	Reject           // with a reason for the agent
	AskReason        // reject, and ask for the reason
	EditCall         // change the call first
)

var (
	errNoPattern = errors.New("no rule can be derived from this call; approve it once with y")
	errNoAnswer  = errors.New("type one of the letters in brackets; n may be followed by a reason")
	errHigh      = errors.New("this is a high-risk call: type the whole word yes to approve it, or n to reject it")
)

// Question is about one call. One key never approves a call with high risk: the word has to be typed in
// full.
type Question struct {
	Risk session.Risk
	// Pattern is what always would allow; "" if there is no safe pattern.
	Pattern string
}

// SureText asks for approval of an edited call with high risk.
const SureText = "The edited call is high risk. Type yes to run it:"

// ErrNotSure is shown if the answer to SureText is not yes.
var ErrNotSure = errors.New("the edited call was not run")

// Sure reports whether text answers SureText with yes.
func Sure(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "yes") }

// High reports whether approval needs the whole word yes.
func (q Question) High() bool { return q.Risk == session.RiskHigh }

// Choices lists the answers.
func (q Question) Choices() string {
	text := "[y]es, [n]o, [e]dit"
	if q.Risk == session.RiskHigh {
		text = "yes, [n]o, [e]dit"
	}
	return text
}

// Text is the question with its answers, without the pattern.
func (q Question) Text() string {
	return fmt.Sprintf("Approve? (%s) %s", Risk(q.Risk), q.Choices())
}

// Parse reads an answer. reason is set for Reject.
func (q Question) Parse(text string) (kind Answer, reason string, err error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if word = strings.ToLower(word); rest != "" && word != "n" && word != "no" {
		word = ""
	}
	high := q.Risk == session.RiskHigh
	switch word {
	case "y", "a":
		if high {
			return 0, "", errHigh
		}
	}
	switch word {
	case "y", "yes":
		return Approve, "", nil
	case "a", "always":
		if q.Pattern == "" {
			return 0, "", errNoPattern
		}
		return Always, "", nil
	case "n", "no":
		if rest = strings.TrimSpace(rest); rest == "" {
			return AskReason, "", nil
		}
		return Reject, rest, nil
	case "e", "edit":
		return EditCall, "", nil
	}
	if high {
		return 0, "", errHigh
	}
	return 0, "", errNoAnswer
}
