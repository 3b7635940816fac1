package native

import "deckhand/internal/session"

// kind is what the format says of a kind of events. The fields are those of the payload.
type kind struct {
	// about describes the kind in the OpenAPI document.
	about string
	// internal kinds never leave the server.
	internal bool
	// private are fields that never leave the server, as paths of JSON names.
	private []string
}

// kinds has every kind of events. A kind that is added to internal/session is added here.
var kinds = map[session.Kind]kind{
	session.KindCreated: {about: "The conversation was created. Always the first event.",
		private: []string{"address", "machine", "mcp", "replay", "then.key", "fingerprint"}},
	session.KindUserSaid:  {about: "The user sent a message. It is queued until the agent reads it.", private: []string{"key"}},
	session.KindWithdrawn: {about: "Queued messages were withdrawn before the agent read them. An edited or moved message follows as a new one."},
	session.KindClaimed:   {internal: true}, // which process works on it
	session.KindWorkspaceReady: {about: "The workspace can be used.",
		private: []string{"handle"}},
	session.KindWorkspaceStep:  {about: "Progress of the workspace: pulling, starting, cloning, setup or hooks."},
	session.KindCheckedOut:     {about: "The repository was checked out into the workspace."},
	session.KindSetUp:          {about: "The setup script of the repository ended."},
	session.KindTrustSet:       {about: "The repository became trusted or untrusted."},
	session.KindSetUpBegan:     {about: "The setup script of the repository is about to run."},
	session.KindHookSet:        {about: "The commit hook of the repository was installed, or the reason why it was not."},
	session.KindEgressSet:      {about: "The network access of the conversation was set."},
	session.KindOverridden:     {about: "The model, the budget, plan mode or approvals of the conversation were overridden."},
	session.KindCheckpointed:   {about: "The files of the workspace were stored as they were after the event up_to. They can be restored."},
	session.KindRestored:       {about: "The user restored files, or the conversation, to an earlier point, or took that back."},
	session.KindBriefed:        {about: "The system prompt and the tools that the model is given."},
	session.KindRecallAsked:    {about: "Knowledge for a message is being looked up."},
	session.KindRecalled:       {about: "Context given to the agent with a message: the workspace, and knowledge matched by triggers."},
	session.KindNudged:         {about: "A reminder to the model, for example that it repeats itself."},
	session.KindReplayed:       {about: "Steps of the recorded trajectory were run."},
	session.KindGranted:        {about: "Part of the budget was reserved for a delegated conversation."},
	session.KindSettled:        {about: "A delegated conversation ended and its cost is known."},
	session.KindCapped:         {about: "The conversation may never spend more than this."},
	session.KindTurnBegan:      {about: "The agent started to work."},
	session.KindModelAsked:     {about: "The model is about to be called, and the money for the call is reserved."},
	session.KindModelAnswered:  {about: "The model answered.", private: []string{"raw"}},
	session.KindModelFailed:    {about: "A model call ended without an answer."},
	session.KindToolCalled:     {about: "A tool call starts, or waits for approval."},
	session.KindToolReturned:   {about: "The result of a tool call. Each call has exactly one."},
	session.KindCommandTyped:   {about: "The user runs a command in the shell of the conversation."},
	session.KindCommandEnded:   {about: "The result of a command that the user ran. Each command has exactly one."},
	session.KindApprovalAsked:  {about: "A tool call waits for approval."},
	session.KindApprovalGiven:  {about: "A tool call was approved or rejected."},
	session.KindCompactAsked:   {about: "The user asked to replace the history with a summary. condensed follows, or noted if the summary failed."},
	session.KindCondensed:      {about: "In the context of the model, a summary replaces these events. The log keeps them."},
	session.KindStateChanged:   {about: "The agent state changed in a way that no other event implies."},
	session.KindTurnEnded:      {about: "The agent has finished its work on the events up to up_to."},
	session.KindPauseRequested: {about: "The agent pauses after the step in progress."},
	session.KindPaused:         {about: "The agent is paused."},
	session.KindResumed:        {about: "The agent continues after a pause or an error."},
	session.KindStopped:        {about: "The conversation was stopped."},
	session.KindStartRequested: {about: "A stopped or failed conversation is being started."},
	session.KindFailed:         {about: "The conversation could not be started."},
	session.KindTitled:         {about: "The conversation was renamed."},
	session.KindRequestOpened:  {about: "A pull request belongs to the conversation."},
	session.KindNoted:          {about: "A notice for the user, for example about a retry."},
	session.KindImported: {about: "An event of a conversation imported from a legacy server. event is the legacy JSON; as has the equivalent native events, with the id and time of this event.",
		private: []string{"said", "answered", "returned", "told", "condensed"}},
	session.KindDeleted: {internal: true}, // the stream ends
}
