package api

import "time"

// Timeline says where the time of a conversation went.
type Timeline struct {
	Spans  []TimelineSpan `json:"spans" doc:"Time spans in order of their start: for each turn on this page, all spans since the end of the previous turn."`
	Totals TimelineTotals `json:"totals" doc:"Totals of the whole conversation."`
	Turns  []TimelineTurn `json:"turns" doc:"Turns of the agent, oldest first."`
	// HasMore and SpansLeftOut say what is not here.
	HasMore      bool `json:"has_more" doc:"Whether there are more turns. Send the event_id of the last turn as after to get them."`
	SpansLeftOut int  `json:"spans_left_out" doc:"Number of spans omitted because the page has too many; the oldest are omitted."`
}

// TimelineSpan is one thing that took time.
type TimelineSpan struct {
	Kind      string     `json:"kind" enum:"queue,sandbox,model,tool,approval"`
	Name      string     `json:"name" doc:"What was queued (message or start), the stage of the sandbox, the model, or the tool."`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"End time; null while in progress."`
	EventID   int64      `json:"event_id" doc:"Number of the event that started the span; for a tool, the number of the call. Some of these events are not shown to clients."`
}

// TimelineTurn is the agent at work on what it was told.
type TimelineTurn struct {
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"End time; null while in progress."`
	EventID   int64      `json:"event_id"`
}

// TimelineTotals are milliseconds. Where several things went on at once, a
// moment counts for the first of them in this order: model, sandbox, tool,
// approval, queue. So the sum is the time that somebody waited.
type TimelineTotals struct {
	Queue    int64 `json:"queue_ms" doc:"Time in which messages were queued and nothing else was in progress."`
	Sandbox  int64 `json:"sandbox_ms" doc:"Time spent preparing the sandbox."`
	Model    int64 `json:"model_ms" doc:"Time spent in model calls."`
	Tool     int64 `json:"tool_ms" doc:"Time spent running tools."`
	Approval int64 `json:"approval_ms" doc:"Time spent waiting for approval."`
}

// MessageQueue is what the agent was told and has not taken up yet.
type MessageQueue struct {
	Messages []QueuedMessage `json:"messages" doc:"Queued messages, oldest first."`
	HasMore  bool            `json:"has_more" doc:"Whether there are more queued messages than shown."`
}

// QueuedMessage is a message that waits.
type QueuedMessage struct {
	EventID   int64     `json:"event_id"`
	Content   string    `json:"content"`
	ImageURLs []string  `json:"image_urls"`
	SaidAt    time.Time `json:"said_at"`
}
