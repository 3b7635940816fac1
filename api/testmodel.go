package api

// TestModel is the body of POST /api/settings/test-model. What is left out is
// taken from the stored settings.
type TestModel struct {
	LLMModel   Opt[string] `json:"llm_model,omitzero" maxLength:"256" doc:"Model as provider/model. Default: the stored one."`
	LLMAPIKey  Opt[string] `json:"llm_api_key,omitzero" format:"password" doc:"Key of the model's provider. Default: the stored one, if the model is asked for at the host that it was stored for."`
	LLMBaseURL Opt[string] `json:"llm_base_url,omitzero" maxLength:"2048" doc:"Address of the model's server. Default: the stored one. An empty string is the provider's own."`
}

// ModelReport answers it: also when the model fails, for that is what was asked.
type ModelReport struct {
	OK     bool         `json:"ok" doc:"Whether agents can work with the model."`
	Model  string       `json:"model" doc:"The model that was tried."`
	Checks []ModelCheck `json:"checks" doc:"What was tried or looked up, in order."`
	// ErrorID is one of the Code constants.
	ErrorID *string `json:"error_id" doc:"Why the model cannot be reached, for machines; null if it can be."`
	// Notes are sentences about the request itself.
	Notes []string `json:"notes,omitempty" doc:"What was done differently than asked."`
}

// ModelCheck is one thing that was tried or looked up.
type ModelCheck struct {
	Name    string `json:"name" enum:"reachable,streaming,tools,images,context,price"`
	OK      *bool  `json:"ok" doc:"null when nobody can tell."`
	Message string `json:"message" doc:"A sentence for people."`
}
