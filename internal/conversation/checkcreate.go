package conversation

import (
	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/settings"
	"deckhand/internal/v0"
)

// ReservedID is an id that no conversation can have: GET /api/conversations/stream is the list's changes.
const ReservedID = "stream"

// checkCreate is what the schema cannot say about a creation request.
func checkCreate(b api.CreateConversation) []api.FieldError {
	var out []api.FieldError
	no := func(typ, msg string, path ...any) {
		out = append(out, api.FieldError{Loc: append([]any{"body"}, path...), Type: typ, Msg: msg})
	}
	repository := func(name string, path ...any) {
		if name != "" && !gitprovider.ValidRepository(name) {
			no("value_error", "Must be owner/name: letters, digits, dots, dashes and underscores, separated by slashes.", path...)
		}
	}
	if b.ConversationID.Value == ReservedID {
		no("value_error", "This conversation_id is reserved. Choose another.", "conversation_id")
	}
	repository(b.Repository.Value, "repository")
	if branch := b.SelectedBranch.Value; branch != "" && !gitprovider.ValidBranch(branch) {
		no("value_error", "Must be a valid git branch name.", "selected_branch")
	}
	if t, ok := b.SuggestedTask.Get(); ok {
		repository(t.Repo, "suggested_task", "repo")
	}
	if m, ok := b.CreateMicroagent.Get(); ok {
		repository(m.Repo, "create_microagent", "repo")
	}
	for i, u := range b.ImageURLs.Value {
		if typ, msg := v0.CheckImageURL(u); typ != "" {
			no(typ, msg, "image_urls", i)
		}
	}
	if r, ok := b.ReplayJSON.Get(); ok && r != "" {
		if _, err := v0.ParseReplay(r); err != nil {
			no("value_error", "Must be a string that contains an exported trajectory: "+err.Error(), "replay_json")
		}
	}
	if m, ok := b.MCPConfig.Get(); ok {
		servers, faults := settings.CheckMCP(m, nil, "body", "mcp_config")
		if len(faults) == 0 {
			faults = servers.CheckSize("body", "mcp_config")
		}
		out = append(out, faults...)
	}
	return out
}
