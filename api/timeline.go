package api

import "time"

// Timeline says where the time of a conversation went.
type Timeline struct {
	Spans  []TimelineSpan `json:"spans" doc:"What took time, in the order in which it began: for each turn on this page, everything since the end of the turn before it."`
	Totals TimelineTotals `json:"totals" doc:"Of the whole conversation."`
	Turns  []TimelineTurn `json:"turns" doc:"Turns of the agent, oldest first."`
	// HasMore and SpansLeftOut say what is not here.
	HasMore      bool `json:"has_more" doc:"Send the event_id of the last turn as after for more."`
	SpansLeftOut int  `json:"spans_left_out" doc:"How many of the oldest spans of this page are not here, because they are too many."`
}

// TimelineSpan is one thing that took time.
type TimelineSpan struct {
	Kind      string     `json:"kind" enum:"queue,sandbox,model,tool,approval"`
	Name      string     `json:"name" doc:"What waited (message or start), how far the sandbox was, the model, or the tool."`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"null while it lasts."`
	EventID   int64      `json:"event_id" doc:"Number of the event that began it; for a tool that of the call. Not every one is shown to clients."`
}

// TimelineTurn is the agent at work on what it was told.
type TimelineTurn struct {
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at" doc:"null while it lasts."`
	EventID   int64      `json:"event_id"`
}

// TimelineTotals are milliseconds. Where several things went on at once, a
// moment counts for the first of them in this order: model, sandbox, tool,
// approval, queue. So the sum is the time that somebody waited.
type TimelineTotals struct {
	Queue    int64 `json:"queue_ms" doc:"Messages waited, and nothing else was going on."`
	Sandbox  int64 `json:"sandbox_ms" doc:"The sandbox was being made."`
	Model    int64 `json:"model_ms" doc:"The model was asked."`
	Tool     int64 `json:"tool_ms" doc:"A tool ran."`
	Approval int64 `json:"approval_ms" doc:"A person was asked."`
}

// MessageQueue is what the agent was told and has not taken up yet.
type MessageQueue struct {
	Messages []QueuedMessage `json:"messages" doc:"Oldest first."`
	HasMore  bool            `json:"has_more" doc:"More messages wait than are shown."`
}

// QueuedMessage is a message that waits.
type QueuedMessage struct {
	EventID   int64     `json:"event_id"`
	Content   string    `json:"content"`
	ImageURLs []string  `json:"image_urls"`
	SaidAt    time.Time `json:"said_at"`
}
