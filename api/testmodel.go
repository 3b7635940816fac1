package api

// TestModel is the body of POST /api/settings/test-model. Omitted fields are taken from
// the stored settings.
type TestModel struct {
	LLMModel   Opt[string] `json:"llm_model,omitzero" maxLength:"256" doc:"Model, as provider/model. Default: the stored model. provider/ alone tests the first model that the provider's server lists."`
	LLMAPIKey  Opt[string] `json:"llm_api_key,omitzero" format:"password" doc:"API key of the model provider. Default: the stored key, if it was stored for the same host."`
	LLMBaseURL Opt[string] `json:"llm_base_url,omitzero" maxLength:"2048" doc:"Base URL of the model. Default: the stored base URL. An empty string means the provider's default."`
}

// ModelReport is the response. It is a success also if the model fails.
type ModelReport struct {
	OK     bool         `json:"ok" doc:"Whether agents can use the model."`
	Model  string       `json:"model" doc:"The tested model."`
	Checks []ModelCheck `json:"checks" doc:"Results of the checks, in order."`
	// ErrorID is one of the Code constants.
	ErrorID *string `json:"error_id" doc:"Error code if the model cannot be reached; otherwise null."`
	// Notes are remarks on the request.
	Notes []string `json:"notes,omitempty" doc:"How the tested call differed from the request."`
}

// ModelCheck is one check of a model.
type ModelCheck struct {
	Name    string `json:"name" enum:"reachable,streaming,tools,images,context,price"`
	OK      *bool  `json:"ok" doc:"null if the result is unknown."`
	Message string `json:"message" doc:"Human-readable result."`
}
