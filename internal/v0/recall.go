package v0

import (
	"maps"
	"slices"

	"deckhand/internal/session"
)

// recallAsked shows that something is looked up for a message. Front ends do not
// render the action; the observation belongs to it.
func recallAsked(e session.Event, p session.RecallAsked) Frame {
	w := newWriter(256 + 2*len(p.Query))
	w.head(e, fromUser, "Retrieving content for: "+firstRunes(p.Query, 50))
	w.action("recall")
	w.str("recall_type", p.Type)
	w.str("query", p.Query)
	w.str("thought", "")
	w.shut('}')
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
	d := details[RecallDetails](p.Details)
	text := "Added microagent knowledge"
	if d.Type != "knowledge" {
		d.Type, text = "workspace_context", "Added workspace context"
	}
	w := newWriter(768 + 2*len(p.Details) + 2*len(p.Text))
	w.head(e, fromAgent, text)
	w.observation("recall", text, p.Asked)
	w.str("recall_type", d.Type)
	w.str("repo_name", d.RepoName)
	w.str("repo_directory", d.RepoDirectory)
	w.str("repo_branch", d.RepoBranch)
	w.str("repo_instructions", d.RepoInstructions)
	w.lit("runtime_hosts", "{}")
	w.str("additional_agent_instructions", "")
	w.str("date", d.Date)
	w.open("custom_secrets_descriptions", '{')
	for _, name := range slices.Sorted(maps.Keys(d.Secrets)) {
		w.str(name, d.Secrets[name])
	}
	w.shut('}')
	w.str("conversation_instructions", d.ConversationInstructions)
	w.str("working_dir", d.WorkingDir)
	w.open("microagent_knowledge", '[')
	for _, item := range p.Items {
		w.open("", '{')
		w.str("name", item.Name)
		w.str("trigger", item.Trigger)
		w.str("content", item.Content)
		w.shut('}')
	}
	w.shut(']')
	w.shut('}')
	return w.end()
}
