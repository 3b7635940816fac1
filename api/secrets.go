package api

// CreateSecret is the body of POST /api/secrets.
type CreateSecret struct {
	Name         string        `json:"name" minLength:"1" doc:"A legal name of an environment variable: that is what it becomes in the sandbox."`
	Value        string        `json:"value" minLength:"1" format:"password" doc:"Never shown again."`
	Description  Opt[string]   `json:"description,omitzero" doc:"What it is for; the agent is told."`
	Repositories Opt[[]string] `json:"repositories,omitzero" doc:"Only conversations on these repositories get it: host and path, such as github.com/octo/app. Omitted, null or empty: all conversations."`
}

// EditSecret is the body of PUT /api/secrets/{secret_id}. The value stays.
type EditSecret struct {
	Name         string        `json:"name" minLength:"1" doc:"The name it shall have."`
	Description  Opt[string]   `json:"description,omitzero" doc:"Omitted: stays. null or empty: cleared."`
	Repositories Opt[[]string] `json:"repositories,omitzero" doc:"Only conversations on these repositories get it. Omitted: stays. null or empty: all conversations."`
}

// SecretInfo is a custom secret as lists show it.
type SecretInfo struct {
	Name         string   `json:"name"`
	Description  *string  `json:"description"`
	Repositories []string `json:"repositories,omitempty" doc:"The repositories that it is limited to; empty: all conversations get it."`
	Warning      string   `json:"warning,omitempty" doc:"Why the value is not masked in what you and the agent see. Absent if it is masked."`
}

// SecretCreated answers POST /api/secrets.
type SecretCreated struct {
	Message string `json:"message"`
	Warning string `json:"warning,omitempty" doc:"Why the value is not masked in what you and the agent see. It works all the same."`
}

// Secrets answers GET /api/secrets.
type Secrets struct {
	CustomSecrets []SecretInfo `json:"custom_secrets"`
}
