package api

// Overrides answers GET and PUT …/overrides.
type Overrides struct {
	LLMModel         *string  `json:"llm_model" doc:"Model of this conversation; null is that of the settings."`
	MaxBudgetPerTask *float64 `json:"max_budget_per_task" doc:"What this conversation may cost in USD; null is the limit of the settings."`
}

// SetOverrides is the body of PUT …/overrides. What is left out stays as it is.
type SetOverrides struct {
	LLMModel         Opt[string]  `json:"llm_model,omitzero" maxLength:"256" doc:"Model as provider/model, of the provider that the stored key is for; null is that of the settings."`
	MaxBudgetPerTask Opt[float64] `json:"max_budget_per_task,omitzero" minimum:"0" doc:"What the conversation may cost in USD, with what it has cost already; null is the limit of the settings."`
}

// ForkConversation is the body of POST …/fork.
type ForkConversation struct {
	EventID Opt[int64]  `json:"event_id,omitzero" minimum:"1" doc:"The last event of the copy; null is the newest."`
	Title   Opt[string] `json:"title,omitzero" maxLength:"200" doc:"Title of the copy; null is that of the original, marked as a copy."`
}
