package api

// ModelProviders is the response of GET /api/model-providers.
type ModelProviders struct {
	Providers []ModelProvider `json:"providers" doc:"Known providers and those of the user, in display order."`
	Default   DefaultModel    `json:"default" doc:"Provider and state of the model in the settings."`
	ModelRoles
}

// ModelProvider is one provider of models, as the user has it configured.
type ModelProvider struct {
	ID             string  `json:"id" doc:"Name before the slash in model names, such as anthropic."`
	Name           string  `json:"name" doc:"Display name."`
	Configured     bool    `json:"configured" doc:"Whether the user has stored an entry for the provider."`
	APIKeySet      bool    `json:"api_key_set" doc:"Whether the entry has an API key. The key is never returned."`
	BaseURL        *string `json:"base_url" doc:"Base URL of the entry; null: default_base_url."`
	DefaultBaseURL *string `json:"default_base_url" doc:"The provider's own base URL; null if the entry needs one."`
	Local          bool    `json:"local" doc:"Whether it is a server on your own machines that needs no key."`
	Lists          bool    `json:"lists" doc:"Whether the models are read from the server: GET /api/models?provider=ID&live=true."`
	Default        bool    `json:"default" doc:"Whether the model in the settings belongs to this provider."`
	Usable         bool    `json:"usable" doc:"Whether models of this provider can be used with the stored keys and base URLs."`
	Note           *string `json:"note" doc:"Notes on how to configure it."`
}

// DefaultModel is how the model in the settings is reached.
type DefaultModel struct {
	Model    string `json:"model" doc:"The model in llm_model, or the server's default."`
	Provider string `json:"provider" doc:"Its provider."`
	OwnKey   bool   `json:"own_key" doc:"Whether llm_api_key or llm_base_url in the settings is used instead of the provider's entry."`
	Usable   bool   `json:"usable" doc:"Whether a conversation can use it with the stored keys and base URLs."`
}

// SetModelProvider is the body of PUT /api/model-providers/{provider_id}.
type SetModelProvider struct {
	APIKey  Opt[string] `json:"api_key,omitzero" format:"password" doc:"API key. bedrock: a Bedrock API key, or AWS credentials as a JSON object with access_key_id, secret_access_key, session_token and region, or as lines such as AWS_ACCESS_KEY_ID=…. vertexai: the JSON key file of a service account, or an access token. Omitted, null or **********: keep the stored key. Empty: remove it."`
	BaseURL Opt[string] `json:"base_url,omitzero" maxLength:"2048" doc:"Base URL. Omitted: unchanged. null or empty: the provider's own. Changing the host without sending api_key drops the stored key."`
}

// ModelProviderStored is the response of PUT and DELETE.
type ModelProviderStored struct {
	Notes []string `json:"notes,omitempty" doc:"Side effects of the change, such as a dropped key that belongs to another host."`
}

// ModelRoles are the models for particular purposes, and the favourites.
type ModelRoles struct {
	Small      *string  `json:"small_model" doc:"Model for titles and summaries; null: the model of the conversation."`
	Fallback   *string  `json:"fallback_model" doc:"Model that continues a turn when the model of the conversation fails; null: none."`
	Favourites []string `json:"favourite_models" doc:"Favourite models, listed first."`
}

// SetModelRoles is the body of PUT /api/model-roles. Omitted fields keep their values.
type SetModelRoles struct {
	Small      Opt[string]   `json:"small_model,omitzero" maxLength:"256" doc:"Model for titles and summaries, as provider/model. null or empty: the model of the conversation."`
	Fallback   Opt[string]   `json:"fallback_model,omitzero" maxLength:"256" doc:"Model that continues a turn when the model of the conversation fails, as provider/model. null or empty: none."`
	Favourites Opt[[]string] `json:"favourite_models,omitzero" doc:"Favourite models, at most 200. Replaces the list."`
}

// ModelQuery is the query of GET /api/models.
type ModelQuery struct {
	Text       string `query:"q" maxLength:"200" doc:"Words to search for in model names."`
	Provider   string `query:"provider" maxLength:"63" doc:"Only models of this provider."`
	Live       bool   `query:"live" doc:"Also ask your own servers, such as Ollama, for their models."`
	Favourites bool   `query:"favourites" doc:"Only favourites."`
	Limit      int64  `query:"limit" default:"50" minimum:"1" maximum:"500" doc:"Maximum number of models."`
}

// ModelList is the response of GET /api/models.
type ModelList struct {
	Models []ModelInfo `json:"models" doc:"Matching models, best first."`
	Total  int         `json:"total" doc:"How many models match."`
	// Problem is set for a live list that could not be read.
	Problem *string `json:"problem" doc:"Why the provider's server returned no list of models, and what to do; null if it did or was not asked."`
}

// ModelInfo is one model.
type ModelInfo struct {
	ID            string   `json:"id" doc:"The model, as provider/model: the value for llm_model."`
	Provider      string   `json:"provider" doc:"ID of its provider."`
	InputPrice    *float64 `json:"input_price" doc:"US dollars per million input tokens; null if unknown."`
	OutputPrice   *float64 `json:"output_price" doc:"US dollars per million output tokens; null if unknown."`
	ContextWindow *int64   `json:"context_window" doc:"Context window in tokens; null if unknown."`
	Tools         bool     `json:"tools" doc:"Whether the model supports native tool calls. Other models write calls as text."`
	Images        bool     `json:"images" doc:"Whether the model accepts images."`
	Reasoning     bool     `json:"reasoning" doc:"Whether the model reasons before it replies, so that reasoning_effort applies."`
	Favourite     bool     `json:"favourite" doc:"Whether it is a favourite of the user."`
	Usable        bool     `json:"usable" doc:"Whether it can be used with the stored keys and base URLs."`
}
