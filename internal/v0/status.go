package v0

import (
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
)

// status is a notice. Legacy clients translate the id where they know it, and show the
// message otherwise.
func status(kind, id, message string) Frame {
	w := newWriter(96 + len(id) + len(message))
	w.notice(kind)
	w.Str("id", id)
	w.Str("message", message)
	w.Shut('}')
	return Frame{Kind: Status, JSON: w.B}
}

func (w *writer) notice(kind string) {
	w.Open("", '{')
	w.Flag("status_update", true)
	w.Str("type", kind)
}

// StepStatus is the id that clients know for a step of making a workspace; ""
// is one that is ready.
func StepStatus(step string) string {
	switch step {
	case "pulling":
		return "STATUS$BUILDING_RUNTIME"
	case "starting":
		return "STATUS$STARTING_RUNTIME"
	case "cloning", "setup":
		return "STATUS$SETTING_UP_WORKSPACE"
	case "hooks":
		return "STATUS$SETTING_UP_GIT_HOOKS"
	case "missing":
		return "STATUS$ERROR_RUNTIME_DISCONNECTED"
	default:
		return "STATUS$READY"
	}
}

// checkedOut is a new notice: the legacy server had none after a clone.
func checkedOut(p session.CheckedOut) Frame {
	message := p.Repository + " is in " + p.Dir + ", on the branch " + p.Branch + "."
	for _, note := range p.Notes {
		message += " " + note
	}
	return status("info", "STATUS$REPOSITORY_READY", message)
}

// trustSet is a new notice.
func trustSet(p session.TrustSet) Frame {
	if p.Trusted {
		return status("info", "STATUS$REPOSITORY_TRUSTED", "The repository is trusted.")
	}
	return status("info", "STATUS$REPOSITORY_NOT_TRUSTED", "The repository is not trusted: custom secrets stay out of the sandbox, and its scripts run without network access.")
}

// setUpBegan is told if the script runs otherwise than usual; that it runs is a step.
func setUpBegan(p session.SetUpBegan) Frame {
	if !p.Confined {
		return Frame{}
	}
	return status("info", "STATUS$SETTING_UP_WORKSPACE", p.Script+" runs without network access and custom secrets: the repository is not trusted.")
}

// hookSet is told if commits are made without the repository's script.
func hookSet(p session.HookSet) Frame {
	if p.Problem == "" {
		return Frame{}
	}
	return status("info", "STATUS$SETTING_UP_GIT_HOOKS", p.Problem)
}

// egressSet is a new notice: legacy clients do not know the ID and show the message.
func egressSet(p session.EgressSet) Frame {
	message := "Network access: " + p.Mode
	if p.Mode == "allowlist" {
		message += " (" + strings.Join(p.Allow, ", ") + ")"
	}
	return status("info", "STATUS$EGRESS_CHANGED", message)
}

// overridden is a new notice: another model answers from here on, or the budget changed.
func overridden(p session.Overridden) Frame {
	model, budget := "as in the settings", "as in the settings"
	if p.Model != "" {
		model = p.Model
	}
	if p.Limited {
		budget = "$" + strconv.FormatFloat(p.Budget.Dollars(), 'f', -1, 64)
	}
	if p.Effort != "" {
		model += " (reasoning effort: " + p.Effort + ")"
	}
	mode := ""
	if p.Plan {
		mode = " Plan mode: the agent changes nothing."
	}
	if p.Approval != "" {
		mode += " Approval: " + p.Approval + "."
	}
	return status("info", "STATUS$OVERRIDES_CHANGED", "Model: "+model+". Budget: "+budget+"."+mode)
}

func noted(p session.Noted) Frame {
	if p.Error {
		return status("error", p.ID, p.Message)
	}
	return status("info", p.ID, p.Message)
}

// requestOpened is a new notice. Legacy clients read the number from the conversation itself.
func requestOpened(p session.RequestOpened) Frame {
	return status("info", "STATUS$PULL_REQUEST_OPENED", gitprovider.RequestName(p.Provider, p.Repository, p.Number)+": "+p.URL)
}

// titled has no id, and the conversation's id for a message: so do clients tell it
// from other notices.
func titled(id session.ID, p session.Titled) Frame {
	w := newWriter(128 + len(id) + len(p.Title))
	w.notice("info")
	w.Str("message", string(id))
	w.Str("conversation_title", p.Title)
	w.Shut('}')
	return Frame{Kind: Status, JSON: w.B}
}

// modelFailed reports a failed model call, and shows the text of an interrupted one. A call that
// is repeated after a restart is not reported. Legacy clients take a status of type error for
// the end of the agent's work, so a call that is retried gets another type.
func modelFailed(e session.Event, p session.ModelFailed) Frame {
	if p.Text != "" {
		w := newWriter(320 + 2*len(p.Text))
		w.Head(e, fromAgent, p.Text+"\n\n["+strings.TrimSuffix(p.Message, ".")+"]")
		w.said(nil, nil, false)
		return w.end()
	}
	switch p.Class {
	case "cancelled", "owner_lost":
		return Frame{}
	}
	kind := "error"
	if p.Retried {
		kind = "info"
	}
	return status(kind, failureID(p.Class), p.Message)
}

// failureID is the id that clients know for a class of model failures.
func failureID(class string) string {
	switch class {
	case "auth":
		return "STATUS$ERROR_LLM_AUTHENTICATION"
	case "overload", "network":
		return "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE"
	case "internal":
		return "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR"
	case "credit":
		return "STATUS$ERROR_LLM_OUT_OF_CREDITS"
	case "policy":
		return "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION"
	case "rate":
		return "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE"
	default: // context, timeout, request and whatever else: the message says what happened
		return "STATUS$ERROR"
	}
}
