package v0

import (
	"maps"
	"slices"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// RecallDetails are what the agent is told about its workspace, piece by piece.
type RecallDetails struct {
	Type                     string            `json:"recall_type,omitempty"`
	RepoName                 string            `json:"repo_name,omitempty"`
	RepoDirectory            string            `json:"repo_directory,omitempty"`
	RepoBranch               string            `json:"repo_branch,omitempty"`
	RepoInstructions         string            `json:"repo_instructions,omitempty"`
	Date                     string            `json:"date,omitempty"`
	Secrets                  map[string]string `json:"custom_secrets_descriptions,omitempty"`
	ConversationInstructions string            `json:"conversation_instructions,omitempty"`
	WorkingDir               string            `json:"working_dir,omitempty"`
}

// recallAsked shows that something is looked up for a message. Front ends do not
// render the action; the observation belongs to it.
func recallAsked(e session.Event, p session.RecallAsked) Frame {
	w := newWriter(256 + 2*len(p.Query))
	w.Head(e, fromUser, "Retrieving content for: "+firstRunes(p.Query, 50))
	w.Action("recall")
	w.Str("recall_type", p.Type)
	w.Str("query", p.Query)
	w.Str("thought", "")
	w.Shut('}')
	return w.end()
}

func firstRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i]
		}
	}
	return text
}

// recalled shows what the agent is told beside a message.
func recalled(e session.Event, p session.Recalled) Frame {
	d := form.Details[RecallDetails](p.Details)
	text := "Added microagent knowledge"
	if d.Type != "knowledge" {
		d.Type, text = "workspace_context", "Added workspace context"
	}
	w := newWriter(768 + 2*len(p.Details) + 2*len(p.Text))
	w.Head(e, fromAgent, text)
	w.Observation("recall", text, p.Asked)
	w.Str("recall_type", d.Type)
	w.Str("repo_name", d.RepoName)
	w.Str("repo_directory", d.RepoDirectory)
	w.Str("repo_branch", d.RepoBranch)
	w.Str("repo_instructions", d.RepoInstructions)
	w.Lit("runtime_hosts", "{}")
	w.Str("additional_agent_instructions", "")
	w.Str("date", d.Date)
	w.Open("custom_secrets_descriptions", '{')
	for _, name := range slices.Sorted(maps.Keys(d.Secrets)) {
		w.Str(name, d.Secrets[name])
	}
	w.Shut('}')
	w.Str("conversation_instructions", d.ConversationInstructions)
	w.Str("working_dir", d.WorkingDir)
	w.Open("microagent_knowledge", '[')
	for _, item := range p.Items {
		w.Open("", '{')
		w.Str("name", item.Name)
		w.Str("trigger", item.Trigger)
		w.Str("content", item.Content)
		w.Shut('}')
	}
	w.Shut(']')
	w.Shut('}')
	return w.end()
}
