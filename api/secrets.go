package api

// CreateSecret is the body of POST /api/secrets.
type CreateSecret struct {
	Name         string        `json:"name" minLength:"1" doc:"Name of the environment variable that holds the secret in the sandbox."`
	Value        string        `json:"value" minLength:"1" format:"password" doc:"Value of the secret. It cannot be read back."`
	Description  Opt[string]   `json:"description,omitzero" doc:"Purpose of the secret, shown to the agent."`
	Repositories Opt[[]string] `json:"repositories,omitzero" doc:"Limit the secret to conversations on these repositories: host and path, such as github.com/octo/app. Omitted, null or empty: all conversations."`
}

// EditSecret is the body of PUT /api/secrets/{secret_id}. The value is kept.
type EditSecret struct {
	Name         string        `json:"name" minLength:"1" doc:"New name of the secret."`
	Description  Opt[string]   `json:"description,omitzero" doc:"Omitted: unchanged. null or empty: cleared."`
	Repositories Opt[[]string] `json:"repositories,omitzero" doc:"Limit the secret to conversations on these repositories. Omitted: unchanged. null or empty: all conversations."`
}

// SecretInfo is a custom secret in lists.
type SecretInfo struct {
	Name         string   `json:"name"`
	Description  *string  `json:"description"`
	Repositories []string `json:"repositories,omitempty" doc:"Repositories that the secret is limited to; empty: all conversations."`
	Warning      string   `json:"warning,omitempty" doc:"Reason why the value is not masked in output. Absent if it is masked."`
}

// SecretCreated is the response of POST /api/secrets.
type SecretCreated struct {
	Message string `json:"message"`
	Warning string `json:"warning,omitempty" doc:"Reason why the value is not masked in output. The secret is stored and works."`
}

// Secrets is the response of GET /api/secrets.
type Secrets struct {
	CustomSecrets []SecretInfo `json:"custom_secrets"`
}
