package api

import "time"

// CreateConversation is the body of POST /api/conversations. No field is required.
type CreateConversation struct {
	Repository               Opt[string]           `json:"repository,omitzero" maxLength:"500" doc:"Repository to work on, as owner/name."`
	GitProvider              Opt[string]           `json:"git_provider,omitzero" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo" doc:"Where the repository lives."`
	SelectedBranch           Opt[string]           `json:"selected_branch,omitzero" maxLength:"500" doc:"Branch to check out."`
	InitialUserMsg           Opt[string]           `json:"initial_user_msg,omitzero" maxLength:"1048576" doc:"First message to the agent."`
	ImageURLs                Opt[[]string]         `json:"image_urls,omitzero" maxItems:"50" doc:"Images that belong to the first message: http(s) or data:image addresses."`
	ReplayJSON               Opt[string]           `json:"replay_json,omitzero" doc:"A recorded trajectory to replay first, as a JSON string that holds an array of events."`
	SuggestedTask            Opt[SuggestedTask]    `json:"suggested_task,omitzero" doc:"A task of a git provider; fills repository, provider and first message."`
	CreateMicroagent         Opt[CreateMicroagent] `json:"create_microagent,omitzero" doc:"Ask for a microagent to be written; fills repository and provider."`
	ConversationInstructions Opt[string]           `json:"conversation_instructions,omitzero" maxLength:"1048576" doc:"Extra instructions, kept for every resume."`
	MCPConfig                Opt[MCPConfig]        `json:"mcp_config,omitzero" doc:"Tool servers of this conversation instead of those in the settings."`
	ConversationID           Opt[string]           `json:"conversation_id,omitzero" nullable:"false" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$" doc:"Identifier to use; sent twice with the same body it names the same conversation."`
}

// SuggestedTask is something a git provider says is to be done.
type SuggestedTask struct {
	GitProvider string `json:"git_provider" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo"`
	TaskType    string `json:"task_type" enum:"MERGE_CONFLICTS,FAILING_CHECKS,UNRESOLVED_COMMENTS,OPEN_ISSUE,OPEN_PR,CREATE_MICROAGENT"`
	Repo        string `json:"repo" minLength:"1" maxLength:"500" doc:"Repository, as owner/name."`
	IssueNumber int64  `json:"issue_number" minimum:"0" doc:"Number of the issue, pull or merge request."`
	Title       string `json:"title" maxLength:"2000"`
	// Solvability is told of open issues only, and ignored when it is sent back.
	Solvability Opt[Solvability] `json:"solvability,omitzero" doc:"How likely an agent solves it, for OPEN_ISSUE; null if that is not known yet."`
}

// CreateMicroagent asks for a microagent in a repository.
type CreateMicroagent struct {
	Repo        string      `json:"repo" minLength:"1" maxLength:"500" doc:"Repository, as owner/name."`
	GitProvider Opt[string] `json:"git_provider,omitzero" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo"`
	Title       Opt[string] `json:"title,omitzero" maxLength:"2000"`
}

// ConversationResponse answers creation, start and stop.
type ConversationResponse struct {
	Status             string  `json:"status" doc:"Always ok here; errors say error."`
	ConversationID     string  `json:"conversation_id"`
	Message            *string `json:"message"`
	ConversationStatus *string `json:"conversation_status" enum:"STARTING,RUNNING,STOPPED"`
}

// ConversationError is the error body of the conversation family.
type ConversationError struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	MsgID   string `json:"msg_id"`
}

// Conversation is what GET tells about one.
type Conversation struct {
	ConversationID     string    `json:"conversation_id"`
	Title              string    `json:"title"`
	LastUpdatedAt      time.Time `json:"last_updated_at"`
	Status             string    `json:"status" enum:"STARTING,RUNNING,STOPPED"`
	RuntimeStatus      *string   `json:"runtime_status" doc:"STATUS$READY while the workspace can be used, STATUS$BUILDING_RUNTIME, STATUS$STARTING_RUNTIME or STATUS$SETTING_UP_WORKSPACE while it is being made; the error's id after a failed start."`
	AgentState         string    `json:"agent_state" doc:"What the agent is doing."`
	ErrorID            *string   `json:"error_id" doc:"Why the conversation failed to start or the last turn ended in an error, as a code."`
	Reason             *string   `json:"reason" doc:"The same as a sentence; also why a stopped conversation was stopped."`
	SelectedRepository *string   `json:"selected_repository"`
	SelectedBranch     *string   `json:"selected_branch"`
	GitProvider        *string   `json:"git_provider"`
	Trigger            *string   `json:"trigger"`
	NumConnections     int       `json:"num_connections" doc:"Live readers on this server."`
	URL                *string   `json:"url"`
	SessionAPIKey      *string   `json:"session_api_key"`
	CreatedAt          time.Time `json:"created_at"`
	PRNumber           []int     `json:"pr_number" doc:"Numbers of the pull requests of this conversation, oldest first."`
	LastEventID        int64     `json:"last_event_id" doc:"Number of the newest event."`
	AccumulatedCost    float64   `json:"accumulated_cost" doc:"US dollars so far."`
	// PullRequests tell more of what PRNumber counts.
	PullRequests []PullRequest `json:"pull_requests" doc:"The pull or merge requests of this conversation, oldest first: those opened in it, or found open when that was tried."`
}

// PullRequest is one that belongs to a conversation.
type PullRequest struct {
	Provider   string `json:"provider" doc:"Where it lives: github, gitlab, bitbucket, gitea, forgejo or enterprise_sso."`
	Repository string `json:"repository" doc:"Repository, as owner/name."`
	Number     int    `json:"number"`
	URL        string `json:"url"`
	Title      string `json:"title" doc:"Its title when it was opened."`
	Source     string `json:"source_branch"`
	Target     string `json:"target_branch"`
}

// ConversationPage is a page of a list.
type ConversationPage struct {
	Results    []Conversation `json:"results"`
	NextPageID *string        `json:"next_page_id" doc:"Send it as page_id for the next page; null at the end."`
}

// PatchConversation is the body of PATCH /api/conversations/{id}.
type PatchConversation struct {
	Title string `json:"title" minLength:"1" maxLength:"200"`
}

// StartConversation is the body of POST /api/conversations/{id}/start.
type StartConversation struct {
	ProvidersSet Opt[[]string] `json:"providers_set,omitzero" enum:"github,gitlab,bitbucket,enterprise_sso,gitea,forgejo" doc:"Accepted for older clients; the stored providers count."`
}
