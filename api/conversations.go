package api

import "time"

// CreateConversation is the body of POST /api/conversations. No field is required.
type CreateConversation struct {
	Repository               Opt[string]           `json:"repository,omitzero" maxLength:"500" doc:"Repository to work on, as owner/name."`
	GitProvider              Opt[string]           `json:"git_provider,omitzero" enum:"git_provider" doc:"Git provider of the repository."`
	SelectedBranch           Opt[string]           `json:"selected_branch,omitzero" maxLength:"500" doc:"Branch to check out."`
	InitialUserMsg           Opt[string]           `json:"initial_user_msg,omitzero" maxLength:"1048576" doc:"First message to the agent."`
	ImageURLs                Opt[[]string]         `json:"image_urls,omitzero" maxItems:"50" doc:"Images in the first message: http(s) or data:image URLs."`
	ReplayJSON               Opt[string]           `json:"replay_json,omitzero" doc:"Recorded trajectory to replay first: a JSON string that contains an array of events."`
	SuggestedTask            Opt[SuggestedTask]    `json:"suggested_task,omitzero" doc:"Suggested task from a git provider; sets repository, provider and first message."`
	CreateMicroagent         Opt[CreateMicroagent] `json:"create_microagent,omitzero" doc:"Microagent to write; sets repository and provider."`
	ConversationInstructions Opt[string]           `json:"conversation_instructions,omitzero" maxLength:"1048576" doc:"Additional instructions for the agent. They also apply after a resume."`
	MCPConfig                Opt[MCPConfig]        `json:"mcp_config,omitzero" doc:"MCP servers of this conversation. Replaces the MCP servers in the settings."`
	ConversationID           Opt[string]           `json:"conversation_id,omitzero" nullable:"false" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$" doc:"ID of the conversation. Repeating a request with the same ID and body returns the same conversation."`
}

// SuggestedTask is an issue or a pull request at a git provider that needs work.
type SuggestedTask struct {
	GitProvider string `json:"git_provider" enum:"git_provider"`
	TaskType    string `json:"task_type" enum:"MERGE_CONFLICTS,FAILING_CHECKS,UNRESOLVED_COMMENTS,OPEN_ISSUE,OPEN_PR,CREATE_MICROAGENT"`
	Repo        string `json:"repo" minLength:"1" maxLength:"500" doc:"Repository, as owner/name."`
	IssueNumber int64  `json:"issue_number" minimum:"0" doc:"Number of the issue, pull request or merge request."`
	Title       string `json:"title" maxLength:"2000"`
	// Solvability is set for open issues only, and ignored in requests.
	Solvability Opt[Solvability] `json:"solvability,omitzero" doc:"Likelihood that an agent can solve an OPEN_ISSUE; null if not known yet."`
}

// CreateMicroagent requests a microagent for a repository.
type CreateMicroagent struct {
	Repo        string      `json:"repo" minLength:"1" maxLength:"500" doc:"Repository, as owner/name."`
	GitProvider Opt[string] `json:"git_provider,omitzero" enum:"git_provider"`
	Title       Opt[string] `json:"title,omitzero" maxLength:"2000"`
}

// ConversationResponse is the response to creating, starting and stopping a conversation.
type ConversationResponse struct {
	Status             string  `json:"status" doc:"Always ok; error responses have error."`
	ConversationID     string  `json:"conversation_id"`
	Message            *string `json:"message"`
	ConversationStatus *string `json:"conversation_status" enum:"STARTING,RUNNING,STOPPED"`
}

// ConversationError is the error body of the conversation routes.
type ConversationError struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	MsgID   string `json:"msg_id"`
}

// Conversation is a conversation in responses.
type Conversation struct {
	ConversationID     string    `json:"conversation_id"`
	Title              string    `json:"title"`
	LastUpdatedAt      time.Time `json:"last_updated_at"`
	Status             string    `json:"status" enum:"STARTING,RUNNING,STOPPED"`
	RuntimeStatus      *string   `json:"runtime_status" doc:"STATUS$READY when the workspace can be used; STATUS$BUILDING_RUNTIME, STATUS$STARTING_RUNTIME or STATUS$SETTING_UP_WORKSPACE while it is being prepared; the error code after a failed start."`
	AgentState         string    `json:"agent_state" doc:"Current state of the agent."`
	ErrorID            *string   `json:"error_id" doc:"Error code if the conversation failed to start or the last turn ended in an error."`
	Reason             *string   `json:"reason" doc:"Error message, or the reason why the conversation was stopped; question if the agent waits for the answer to a question."`
	SelectedRepository *string   `json:"selected_repository"`
	SelectedBranch     *string   `json:"selected_branch"`
	GitProvider        *string   `json:"git_provider"`
	Trigger            *string   `json:"trigger"`
	NumConnections     int       `json:"num_connections" doc:"Number of live connections on this server."`
	URL                *string   `json:"url"`
	SessionAPIKey      *string   `json:"session_api_key"`
	CreatedAt          time.Time `json:"created_at"`
	PRNumber           []int     `json:"pr_number" doc:"Pull request numbers of this conversation, oldest first."`
	LastEventID        int64     `json:"last_event_id" doc:"Number of the newest event."`
	AccumulatedCost    float64   `json:"accumulated_cost" doc:"Cost so far in US dollars."`
	// PullRequests are the pull requests in PRNumber with more details.
	PullRequests []PullRequest `json:"pull_requests" doc:"Pull or merge requests of this conversation, oldest first. Includes requests that were already open when the agent tried to open them."`
	Queue        *QueuePlace   `json:"queue,omitzero" doc:"Position in the queue while the conversation waits for a free slot; missing if it does not wait."`
}

// QueuePlace is the position of a conversation in the queue for a free slot.
type QueuePlace struct {
	Position int    `json:"position" doc:"1 is next. Counts all conversations that wait for the server, or only your own if the reason is user_limit."`
	Reason   string `json:"reason" enum:"server_limit,user_limit" doc:"The limit that the conversation waits for: that of the server, or the limit per user."`
	Running  int    `json:"running" doc:"Number of running conversations that count towards the limit."`
	Limit    int    `json:"limit" doc:"Maximum number of running conversations."`
	Message  string `json:"message" doc:"Position and reason in a sentence."`
}

// QueueMove is a new position in the queue, on the stream of the conversation list.
type QueueMove struct {
	ConversationID string      `json:"conversation_id"`
	Queue          *QueuePlace `json:"queue" doc:"null when the conversation no longer waits."`
}

// PullRequest is a pull request of a conversation.
type PullRequest struct {
	Provider   string `json:"provider" doc:"Name of the git provider."`
	Repository string `json:"repository" doc:"Repository, as owner/name."`
	Number     int    `json:"number"`
	URL        string `json:"url"`
	Title      string `json:"title" doc:"Title at the time of opening."`
	Source     string `json:"source_branch"`
	Target     string `json:"target_branch"`
}

// ConversationPage is a page of a list.
type ConversationPage struct {
	Results    []Conversation `json:"results"`
	NextPageID *string        `json:"next_page_id" doc:"Cursor of the next page: send it as page_id. null on the last page."`
}

// PatchConversation is the body of PATCH /api/conversations/{id}.
type PatchConversation struct {
	Title string `json:"title" minLength:"1" maxLength:"200"`
}

// StartConversation is the body of POST /api/conversations/{id}/start.
type StartConversation struct {
	ProvidersSet Opt[[]string] `json:"providers_set,omitzero" enum:"git_provider" doc:"Ignored; accepted for legacy clients. The stored providers are used."`
}

// ImportedConversation is the response of POST /api/conversations/import.
type ImportedConversation struct {
	ConversationID string   `json:"conversation_id" doc:"ID of the new conversation, which belongs to you."`
	Events         int      `json:"events" doc:"Number of imported events."`
	SkippedEvents  int      `json:"skipped_events" doc:"Number of events that could not be read."`
	Files          int      `json:"files" doc:"Number of files, folders and links in the workspace."`
	SkippedLinks   []string `json:"skipped_links" doc:"Symbolic links that could not be created."`
	// AppliedSettings are names of settings and overrides.
	AppliedSettings []string         `json:"applied_settings" doc:"Settings of the file that the new conversation uses, such as llm_model."`
	SkippedSettings []SkippedSetting `json:"skipped_settings" doc:"Settings of the file that the new conversation does not use."`
}

// SkippedSetting is a setting of an exported conversation that an import did not apply.
type SkippedSetting struct {
	Setting string `json:"setting" doc:"Name of the setting, such as mcp_config."`
	Reason  string `json:"reason" doc:"Reason, and what you can do."`
}
