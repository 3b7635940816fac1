package api

import "time"

// Timeline is the time breakdown of a conversation.
type Timeline struct {
	Spans  []TimelineSpan `json:"spans" doc:"Time spans in order of their start: for each turn on this page, all spans since the end of the previous turn."`
	Totals TimelineTotals `json:"totals" doc:"Totals of the whole conversation."`
	Turns  []TimelineTurn `json:"turns" doc:"Turns of the agent, oldest first."`
	// HasMore and SpansLeftOut say what is omitted.
	HasMore      bool `json:"has_more" doc:"Whether there are more turns. Send the event_id of the last turn as after to get them."`
	SpansLeftOut int  `json:"spans_left_out" doc:"Number of spans omitted because the page has too many; the oldest are omitted."`
}

// TimelineSpan is one activity.
type TimelineSpan struct {
	Kind      string     `json:"kind" enum:"queue,sandbox,model,tool,approval"`
	Name      string     `json:"name" doc:"What was queued (message or start), the stage of the sandbox, the model, or the tool."`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"End time; null while in progress."`
	EventID   int64      `json:"event_id" doc:"Number of the event that started the span; for a tool, the number of the call. Some of these events are not shown to clients."`
}

// TimelineTurn is one turn of the agent.
type TimelineTurn struct {
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"End time; null while in progress."`
	EventID   int64      `json:"event_id"`
}

// TimelineTotals are milliseconds. If several activities overlap, the time counts for the
// first of them in this order: model, sandbox, tool, approval, queue. So the sum is the
// elapsed time.
type TimelineTotals struct {
	Queue    int64 `json:"queue_ms" doc:"Time in which messages were queued and nothing else was in progress."`
	Sandbox  int64 `json:"sandbox_ms" doc:"Time spent preparing the sandbox."`
	Model    int64 `json:"model_ms" doc:"Time spent in model calls."`
	Tool     int64 `json:"tool_ms" doc:"Time spent running tools."`
	Approval int64 `json:"approval_ms" doc:"Time spent waiting for approval."`
}

// MessageQueue is the messages that the agent has not read yet.
type MessageQueue struct {
	Messages []QueuedMessage `json:"messages" doc:"Queued messages, oldest first."`
	HasMore  bool            `json:"has_more" doc:"Whether there are more queued messages than shown."`
}

// QueuedMessage is a queued message.
type QueuedMessage struct {
	EventID   int64     `json:"event_id"`
	Content   string    `json:"content"`
	ImageURLs []string  `json:"image_urls"`
	SaidAt    time.Time `json:"said_at"`
}

// ChangeQueuedMessage is the body of PATCH …/queue/{event_id}. Omitted fields keep their values.
type ChangeQueuedMessage struct {
	Content  Opt[string] `json:"content,omitzero" nullable:"false" maxLength:"1048576" doc:"New text of the message."`
	Position Opt[int]    `json:"position,omitzero" nullable:"false" minimum:"0" doc:"New place in the queue; 0 is first."`
	SendNow  Opt[bool]   `json:"send_now,omitzero" nullable:"false" doc:"Interrupt the step in progress, so that the agent reads the message next."`
}
