package v0

import (
	"maps"
	"slices"

	"deckhand/internal/session"
)

// recalled shows what the agent is told beside a message.
func recalled(e session.Event, p session.Recalled) Frame {
	d := details[RecallDetails](p.Details)
	text := "Added microagent knowledge"
	if d.Type != "knowledge" {
		d.Type, text = "workspace_context", "Added workspace context"
	}
	w := newWriter(768 + 2*len(p.Details) + 2*len(p.Text))
	w.head(e, fromAgent, text)
	w.observation("recall", text, p.Of)
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
