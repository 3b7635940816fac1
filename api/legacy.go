package api

// VSCodeURL is the response of GET …/vscode-url.
type VSCodeURL struct {
	VSCodeURL *string `json:"vscode_url" doc:"Always null: no editor runs in the sandbox."`
}

// ExperimentConfig is the body of POST …/exp-config.
type ExperimentConfig struct {
	Config Opt[map[string]string] `json:"config,omitzero"`
}

// EventFilter is the optional body of GET …/events. Each field is also a query parameter.
type EventFilter struct {
	ExcludeHidden Opt[bool]     `json:"exclude_hidden,omitzero" nullable:"false" doc:"Leave out hidden commands and their results."`
	Query         Opt[string]   `json:"query,omitzero" maxLength:"1000" doc:"Only events whose JSON contains this text, ignoring case."`
	IncludeTypes  Opt[[]string] `json:"include_types,omitzero" maxItems:"100" doc:"Only events of these action and observation types."`
	ExcludeTypes  Opt[[]string] `json:"exclude_types,omitzero" maxItems:"100" doc:"No events of these action and observation types."`
	Source        Opt[string]   `json:"source,omitzero" maxLength:"100" doc:"Only events from this source: agent, user or environment."`
	StartDate     Opt[string]   `json:"start_date,omitzero" maxLength:"100" doc:"Only events at or after this time."`
	EndDate       Opt[string]   `json:"end_date,omitzero" maxLength:"100" doc:"Only events at or before this time."`
}

// NotInitialized is the 404 body of the security routes.
type NotInitialized struct {
	Detail string `json:"detail"`
}
