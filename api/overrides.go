package api

// Overrides is the response of GET and PUT …/overrides.
type Overrides struct {
	LLMModel         *string  `json:"llm_model" doc:"Model of this conversation; null: the model in the settings."`
	MaxBudgetPerTask *float64 `json:"max_budget_per_task" doc:"Spending limit of this conversation in USD; null: the limit in the settings."`
	ReasoningEffort  *string  `json:"reasoning_effort" enum:"low,medium,high" doc:"How much the model reasons; null: the provider's default."`
	PlanMode         bool     `json:"plan_mode" doc:"Whether the agent is read-only and makes a plan."`
	Approval         *string  `json:"approval" enum:"always,risky,never" doc:"Which tool calls need approval: all, those that are risky, or none; null: as in the settings."`
}

// Model is the model of the conversation; "" for the one in the settings.
func (o Overrides) Model() string {
	if o.LLMModel == nil {
		return ""
	}
	return *o.LLMModel
}

// OverrideModel is the body that changes only the model.
func OverrideModel(name string) SetOverrides { return SetOverrides{LLMModel: Some(name)} }

// SetOverrides is the body of PUT …/overrides. Omitted fields keep their values.
type SetOverrides struct {
	LLMModel         Opt[string]  `json:"llm_model,omitzero" maxLength:"256" doc:"Model, as provider/model, of a provider whose key is stored. null: the model in the settings."`
	MaxBudgetPerTask Opt[float64] `json:"max_budget_per_task,omitzero" minimum:"0" doc:"Spending limit in USD, including the cost so far. null: the limit in the settings."`
	ReasoningEffort  Opt[string]  `json:"reasoning_effort,omitzero" enum:"low,medium,high" doc:"How much the model reasons, if it does. null: the provider's default."`
	PlanMode         Opt[bool]    `json:"plan_mode,omitzero" nullable:"false" doc:"Make the agent read-only: it makes a plan and changes nothing until plan_mode is false again."`
	Approval         Opt[string]  `json:"approval,omitzero" enum:"always,risky,never" doc:"Which tool calls need approval: all, those that are risky, or none. null: as in the settings."`
}

// Override returns the overrides of a model and a budget; "" and nil keep the current ones.
func Override(model string, budget *float64) (out SetOverrides) {
	if model != "" {
		out = OverrideModel(model)
	}
	if budget != nil {
		out.MaxBudgetPerTask = Some(*budget)
	}
	return out
}

// ForkConversation is the body of POST …/fork.
type ForkConversation struct {
	EventID Opt[int64]  `json:"event_id,omitzero" minimum:"1" doc:"Last event to copy; null: the newest."`
	Files   Opt[string] `json:"files,omitzero" enum:"now,event" doc:"Files of the copy. now: the current files. event: the files after the event, from the last checkpoint before it. Default: now."`
	Title   Opt[string] `json:"title,omitzero" maxLength:"200" doc:"Title of the copy; null: the original title, marked as a copy."`
}
