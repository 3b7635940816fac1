package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
)

// recorded is what stands for a model where a recording answers.
const recorded = "replay"

// Event shows one event of the log. Give all of them, in order.
func (d *Display) Event(e session.Event) {
	switch p := e.Payload.(type) {
	case session.UserSaid:
		if d.Messages {
			d.apart(words)
			d.line(bold, d.folds("> ", Clean(strings.TrimSpace(p.Text))))
		}
	case session.Recalled:
		d.recalled(p)
	case session.ModelAsked:
		if p.Model == recorded {
			return
		}
		d.asks++
		d.Status("waiting for the model")
	case session.ModelAnswered:
		if p.Purpose == "" {
			d.answered(p)
		}
	case session.ModelFailed:
		d.broken(p)
	case session.ToolCalled:
		d.called(p)
	case session.ToolReturned:
		d.returned(p)
	case session.CommandTyped:
		d.typed(e.Number, p)
	case session.CommandEnded:
		d.typedEnded(p)
	case session.ApprovalAsked:
		d.asked(p)
	case session.ApprovalGiven:
		d.edited(p)
	default:
		d.notice(e.Payload)
	}
}

// notice shows the events that are told in a line.
func (d *Display) notice(p session.Payload) {
	switch p := p.(type) {
	case session.WorkspaceStep:
		d.Status(strings.TrimSpace("sandbox: " + p.Step + " " + p.Message))
	case session.CheckedOut:
		d.Notice(p.Repository + " is in " + p.Dir + ", on the branch " + p.Branch)
		for _, note := range p.Notes {
			d.Notice(note)
		}
	case session.SetUp:
		d.Notice(fmt.Sprintf("%s ended with exit code %d", p.Script, p.Exit))
		if p.Problem != "" {
			d.Problem(p.Problem)
		}
	case session.HookSet:
		if p.Problem != "" {
			d.Notice(p.Problem)
		}
	case session.TrustSet:
		if !p.Trusted {
			d.Notice("the repository is not trusted: the sandbox does not get custom secrets")
		}
	case session.EgressSet:
		d.Notice(strings.TrimSpace("network access: " + p.Mode + " " + strings.Join(p.Allow, ", ")))
	case session.Overridden:
		d.overridden(p)
	case session.Restored:
		d.Notice(restored(p))
	case session.Nudged:
		d.Notice("reminder to the agent: " + p.Text)
	case session.CompactAsked:
		d.Notice("compacting the history")
	case session.Condensed:
		d.Notice("older history was replaced with a summary")
	case session.RequestOpened:
		d.Notice(gitprovider.RequestName(p.Provider, p.Repository, p.Number) + ": " + p.URL)
	case session.Noted:
		if p.Error {
			d.Problem(p.Message)
		} else {
			d.Notice(p.Message)
		}
	case session.StateChanged:
		if p.State == session.AgentRateLimited {
			d.Status("rate limited by the provider; waiting")
		}
	case session.PauseRequested:
		d.Notice("pausing after this step")
	case session.Paused:
		d.Notice("paused")
	case session.TurnEnded:
		if p.State == session.AgentError || p.State == session.AgentRateLimited {
			d.Problem(p.Reason)
		}
	case session.Failed:
		d.Problem(p.Reason)
	}
}

// restored says what was restored.
func restored(p session.Restored) string {
	what := "the conversation"
	if p.Files {
		var parts []string
		switch {
		case p.Changed == 1:
			parts = append(parts, "1 file")
		case p.Changed > 1:
			parts = append(parts, fmt.Sprintf("%d files", p.Changed))
		case !p.Git && !p.Conversation:
			parts = append(parts, "no files")
		}
		if p.Git {
			parts = append(parts, "the git history")
		}
		if p.Conversation {
			parts = append(parts, "the conversation")
		}
		what = strings.Join(parts, " and ")
	}
	switch p.Action {
	case session.RestoreUndo:
		return "undid the restore of " + what
	case session.RestoreRedo:
		return "redid the restore of " + what
	}
	return "restored " + what + " to an earlier point"
}

// overridden reports the settings that the user changed for this conversation.
func (d *Display) overridden(p session.Overridden) {
	before := d.chosen
	d.chosen = p
	var said []string
	if p.Model != before.Model || p.Effort != before.Effort {
		text := "model: " + cmp.Or(p.Model, "as in the settings")
		if p.Effort != "" {
			text += " (reasoning effort: " + p.Effort + ")"
		}
		said = append(said, text)
	}
	if p.Limited != before.Limited || p.Budget != before.Budget {
		text := "budget: as in the settings"
		if p.Limited {
			text = fmt.Sprintf("budget: $%.2f", p.Budget.Dollars())
		}
		said = append(said, text)
	}
	if p.Plan != before.Plan {
		said = append(said, map[bool]string{true: "plan mode on: the agent only reads and writes a plan", false: "plan mode off"}[p.Plan])
	}
	if p.Approval != before.Approval {
		said = append(said, "approvals: "+cmp.Or(map[string]string{"always": "ask before every call", "risky": "ask before risky calls", "never": "never ask"}[p.Approval], "as in the settings"))
	}
	if len(said) == 0 {
		said = []string{"model, budget and plan mode: as in the settings"}
	}
	d.Notice(strings.Join(said, "; "))
}

// broken ends an answer that stays unfinished. The end of the turn, or the next event, shows the
// reason.
func (d *Display) broken(p session.ModelFailed) {
	if p.Text != "" && d.call != p.Call { // it was not shown while it was written
		d.apart(words)
		d.fresh()
		d.words.add(Clean(p.Text))
		d.fresh()
	}
	d.end(p.Call)
}

// recalled says what knowledge the agent was given by name.
func (d *Display) recalled(p session.Recalled) {
	var names []string
	for _, k := range p.Items {
		names = append(names, k.Name)
	}
	if len(names) > 0 {
		d.Notice("knowledge used: " + strings.Join(names, ", "))
	}
}

// answered ends the answer that was shown while it was written, or shows it now.
func (d *Display) answered(p session.ModelAnswered) {
	shown := ""
	if d.call == p.Call {
		shown = d.said.String()
	}
	if p.Reasoning != "" && shown == "" {
		d.thought(p.Reasoning)
	}
	if rest, ok := strings.CutPrefix(p.Text, shown); ok {
		if shown == "" && rest != "" {
			d.apart(words)
			d.fresh()
		}
		d.words.add(Clean(rest))
	}
	d.end(p.Call)
	d.fresh()
}

// maxThought is how many lines of a thought are shown.
const maxThought = 12

func (d *Display) thought(text string) {
	d.apart(words)
	d.some(dim, "  ", text, maxThought)
}

// some shows the first lines of a text, and says how many there are more.
func (d *Display) some(look, indent, text string, most int) {
	lines := strings.Split(strings.TrimRight(Clean(text), "\n"), "\n")
	most = d.most(most)
	for i, l := range lines {
		if i == most && len(lines) > most+1 {
			d.line(dim, indent+"… "+count(len(lines)-i, "more line"))
			return
		}
		d.line(look, indent+clip(l, d.width()-len(indent)-1))
	}
}

// Delta shows more of what is being written in a call: an answer, or the output
// of a tool. Give the events up to now first.
func (d *Display) Delta(call, text string) {
	switch {
	case slices.Contains(d.done[:], call):
	case d.output != nil && call == d.tool.ID:
		d.output.add(text)
	default:
		if d.call != call {
			d.end(d.call)
			d.apart(words)
			d.fresh()
			d.call = call
			d.said.Reset()
		}
		d.said.WriteString(text)
		d.words.add(Clean(text))
	}
}

// end remembers that nothing more is shown of a call.
func (d *Display) end(call string) {
	if call == "" || slices.Contains(d.done[:], call) {
		return
	}
	d.done[d.at] = call
	d.at = (d.at + 1) % len(d.done)
	if d.call == call {
		d.call = ""
		d.said.Reset()
	}
}
