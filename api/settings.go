package api

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Masked replaces a stored secret in responses. In a request, it keeps the stored value.
const Masked = "**********"

// SettingsInput is the body of POST /api/settings. An omitted field keeps the stored
// value and null resets it to the default, unless the field says otherwise. The empty
// string clears a string or a key.
//
// Decoding is strict: its error is a *ValidationError that lists every field of a wrong
// type. Unknown fields are not an error; see Unknown.
type SettingsInput struct {
	Language         Opt[string] `json:"language,omitzero" maxLength:"35" doc:"Language of the user interface and of the agent's replies: a tag such as en or pt-BR."`
	Agent            Opt[string] `json:"agent,omitzero" doc:"Agent profile, one of /api/options/agents. Empty or null: CodeActAgent."`
	MaxIterations    Opt[int]    `json:"max_iterations,omitzero" minimum:"1" maximum:"100000" doc:"Maximum number of model calls per turn."`
	SecurityAnalyzer Opt[string] `json:"security_analyzer,omitzero" doc:"Analyzer that rates the risk of tool calls, one of /api/options/security-analyzers. Empty or null: off."`
	ConfirmationMode Opt[bool]   `json:"confirmation_mode,omitzero" doc:"Ask for approval before risky tool calls."`
	ApprovalMode     Opt[string] `json:"approval_mode,omitzero" enum:"always,risky,never" doc:"When to ask for approval of tool calls, as one choice: always; risky, when rules rate the call as risky; never. It sets confirmation_mode and security_analyzer, and wins over them if its value changes. null keeps both."`
	LLMModel         Opt[string] `json:"llm_model,omitzero" maxLength:"256" doc:"Model, as provider/model. null keeps the stored value."`
	LLMAPIKey        Opt[string] `json:"llm_api_key,omitzero" format:"password" doc:"API key of the model provider. null keeps the stored key, an empty string clears it."`
	LLMBaseURL       Opt[string] `json:"llm_base_url,omitzero" maxLength:"2048" doc:"Base URL of an OpenAI-compatible server. null keeps the stored value. Changing the host without sending llm_api_key again drops the stored key."`

	RemoteRuntimeResourceFactor Opt[int]         `json:"remote_runtime_resource_factor,omitzero" enum:"1,2,4,8" doc:"Multiplies the CPU and memory limits of the sandbox."`
	SecretsStore                Opt[UserSecrets] `json:"secrets_store,omitzero" doc:"Git provider tokens and custom secrets, merged by name. null removes all of them."`

	// The four enable_* fields are not nullable.
	EnableDefaultCondenser              Opt[bool] `json:"enable_default_condenser,omitzero" nullable:"false" doc:"Summarise old history when it nears the context window. Not nullable."`
	CondenserMaxSize                    Opt[int]  `json:"condenser_max_size,omitzero" minimum:"20" maximum:"100000" doc:"Also summarise old history when it has more messages than this. null: no limit on messages."`
	EnableSoundNotifications            Opt[bool] `json:"enable_sound_notifications,omitzero" nullable:"false" doc:"Play a sound when the agent finishes or waits for input. Not nullable."`
	EnableProactiveConversationStarters Opt[bool] `json:"enable_proactive_conversation_starters,omitzero" nullable:"false" doc:"Offer suggested tasks from the git providers. Not nullable."`
	EnableSolvabilityAnalysis           Opt[bool] `json:"enable_solvability_analysis,omitzero" nullable:"false" doc:"Rate suggested issues with the user's model. Not nullable."`

	UserConsentsToAnalytics      Opt[bool]      `json:"user_consents_to_analytics,omitzero" doc:"Allow anonymous usage counts. null keeps the stored value."`
	SandboxBaseContainerImage    Opt[string]    `json:"sandbox_base_container_image,omitzero" maxLength:"512" doc:"Image of the sandbox; the runner is injected."`
	SandboxRuntimeContainerImage Opt[string]    `json:"sandbox_runtime_container_image,omitzero" maxLength:"512" doc:"Sandbox image that already contains the runner; nothing is injected."`
	MCPConfig                    Opt[MCPConfig] `json:"mcp_config,omitzero" doc:"MCP servers for all conversations. Replaces the stored list; a masked api_key or env value keeps the stored one."`
	SearchAPIKey                 Opt[string]    `json:"search_api_key,omitzero" format:"password" doc:"API key of the web search service. null keeps the stored key, an empty string clears it."`
	SandboxAPIKey                Opt[string]    `json:"sandbox_api_key,omitzero" format:"password" doc:"API key of a remote sandbox. null keeps the stored key, an empty string clears it."`
	MaxBudgetPerTask             Opt[float64]   `json:"max_budget_per_task,omitzero" minimum:"0" doc:"Spending limit per conversation in USD."`
	Email                        Opt[string]    `json:"email,omitzero" maxLength:"254" doc:"E-mail address of the user."`
	EmailVerified                Opt[bool]      `json:"email_verified,omitzero" doc:"Whether the address is verified. Notifications are sent only to verified addresses."`
	GitUserName                  Opt[string]    `json:"git_user_name,omitzero" maxLength:"255" doc:"Author name of the agent's commits."`
	GitUserEmail                 Opt[string]    `json:"git_user_email,omitzero" maxLength:"254" doc:"Author e-mail of the agent's commits."`

	unknown  []string
	readOnly map[string]json.RawMessage
}

// Unknown returns the sorted names of fields in the decoded body that are not settings.
func (in SettingsInput) Unknown() []string { return in.unknown }

// ReadOnly returns the fields of the decoded body that are part of the response of GET
// and cannot be set.
func (in SettingsInput) ReadOnly() map[string]json.RawMessage { return in.readOnly }

// UnmarshalJSON matches names exactly; encoding/json would also accept LLM_API_KEY.
func (in *SettingsInput) UnmarshalJSON(b []byte) error {
	obj, err := object(b)
	if err != nil {
		return at(err, "body")
	}
	*in = SettingsInput{}
	var f faults
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := obj[name]
		if name == "" || !ok {
			continue
		}
		delete(obj, name)
		f.decode(raw, v.Field(i).Addr().Interface(), "body", name)
	}
	// Clients that send back the response of GET send these fields too. Only changed
	// values are reported.
	for _, name := range []string{"llm_api_key_set", "search_api_key_set", "sandbox_api_key_set", "provider_tokens_set"} {
		if raw, ok := obj[name]; ok {
			if in.readOnly == nil {
				in.readOnly = map[string]json.RawMessage{}
			}
			in.readOnly[name] = raw
			delete(obj, name)
		}
	}
	in.unknown = names(obj)
	return f.err()
}

// MCPConfig lists MCP servers, at most 100 in total.
type MCPConfig struct {
	SSEServers   []MCPServer   `json:"sse_servers" required:"false" doc:"MCP servers that use the SSE transport."`
	StdioServers []StdioServer `json:"stdio_servers" required:"false" doc:"MCP servers that run as commands inside the sandbox, in its home folder. A server with env values does not start while the conversation's repository is untrusted."`
	SHTTPServers []MCPServer   `json:"shttp_servers" required:"false" doc:"MCP servers that use the streamable HTTP transport."`
}

// UnmarshalJSON rejects unknown names, because a misspelled list would be lost.
func (c *MCPConfig) UnmarshalJSON(b []byte) error {
	obj, err := object(b)
	if err != nil {
		return err
	}
	*c = MCPConfig{}
	var f faults
	list(&f, obj, "sse_servers", &c.SSEServers)
	list(&f, obj, "stdio_servers", &c.StdioServers)
	list(&f, obj, "shttp_servers", &c.SHTTPServers)
	f.extra(obj, "sse_servers, stdio_servers and shttp_servers")
	return f.err()
}

// MCPServer is an MCP server with a URL. It may be sent as an object or as the URL.
type MCPServer struct {
	URL     string  `json:"url" maxLength:"2048" doc:"URL of the server, http or https."`
	APIKey  *string `json:"api_key" required:"false" format:"password" doc:"Key sent to the server. ********** keeps the key stored for this URL."`
	Timeout *int    `json:"timeout,omitempty" minimum:"1" maximum:"3600" doc:"Timeout of a call in seconds, for shttp_servers only."`
}

// UnmarshalJSON accepts both forms.
func (s *MCPServer) UnmarshalJSON(b []byte) error {
	*s = MCPServer{}
	if isString(b) {
		return json.Unmarshal(b, &s.URL)
	}
	obj, err := object(b)
	if err != nil {
		return wrongType("model_type", "Send an object with url and api_key, or the url as a string.")
	}
	var f faults
	f.required(obj, "url", &s.URL)
	f.optional(obj, "api_key", &s.APIKey)
	f.optional(obj, "timeout", &s.Timeout)
	f.extra(obj, "url, api_key and timeout")
	return f.err()
}

// StdioServer is an MCP server that runs in the sandbox.
type StdioServer struct {
	Name    string            `json:"name" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$" doc:"Name of the server, unique in the list."`
	Command string            `json:"command" doc:"Command to run, without arguments."`
	Args    []string          `json:"args" required:"false" doc:"Arguments, as a list or as one shell-quoted string."`
	Env     map[string]string `json:"env" required:"false" doc:"Environment variables, as an object or a string K=V,K2=V2. ********** keeps the stored value."`
}

// UnmarshalJSON also accepts the legacy string forms of args and env.
func (s *StdioServer) UnmarshalJSON(b []byte) error {
	*s = StdioServer{}
	obj, err := object(b)
	if err != nil {
		return err
	}
	var f faults
	f.required(obj, "name", &s.Name)
	f.required(obj, "command", &s.Command)
	if line, ok := takeString(obj, "args"); ok {
		if s.Args, ok = splitShell(line); !ok {
			f.add("value_error", "A quote is not closed. Close it, or send the arguments as a list.", "args")
		}
	} else {
		list(&f, obj, "args", &s.Args)
	}
	if line, ok := takeString(obj, "env"); ok {
		if s.Env, ok = splitEnv(line); !ok {
			f.add("value_error", "Send an object, or NAME=value pairs separated by commas.", "env")
		}
	} else {
		dict(&f, obj, "env", &s.Env)
	}
	f.extra(obj, "name, command, args and env")
	return f.err()
}

// UserSecrets is merged by name into the stored secrets; null removes an entry. If
// provider_tokens or custom_secrets itself is null, it is ignored.
type UserSecrets struct {
	ProviderTokens map[string]*ProviderToken `json:"provider_tokens,omitempty" doc:"Tokens by the name of the git provider: a string, an object {token, host, user_id}, or null to remove it."`
	CustomSecrets  map[string]*CustomSecret  `json:"custom_secrets,omitempty" doc:"Secrets by name, which must be a valid environment variable name: a string, an object {secret, description, repositories}, or null to remove it."`
}

// UnmarshalJSON rejects unknown names, because secrets under a misspelled name would be
// lost.
func (u *UserSecrets) UnmarshalJSON(b []byte) error {
	obj, err := object(b)
	if err != nil {
		return err
	}
	*u = UserSecrets{}
	var f faults
	dict(&f, obj, "provider_tokens", &u.ProviderTokens)
	dict(&f, obj, "custom_secrets", &u.CustomSecrets)
	f.extra(obj, "provider_tokens and custom_secrets")
	return f.err()
}

// ProviderToken is a token for a git provider. A string is short for {token}. Omitted
// fields and a null token keep the stored value; a null host or user_id clears it.
type ProviderToken struct {
	Token  Opt[string] `json:"token,omitzero" format:"password" doc:"The token. Omitted, null or **********: keep the stored one. Empty: clear it."`
	Host   Opt[string] `json:"host,omitzero" doc:"Host of a self-hosted provider. Changing it without sending the token drops the token."`
	UserID Opt[string] `json:"user_id,omitzero" doc:"User ID at the provider."`
}

// UnmarshalJSON accepts both forms.
func (t *ProviderToken) UnmarshalJSON(b []byte) error {
	*t = ProviderToken{}
	if isString(b) {
		return json.Unmarshal(b, &t.Token)
	}
	obj, err := object(b)
	if err != nil {
		return wrongType("model_type", "Send the token as a string, an object with token, host and user_id, or null.")
	}
	var f faults
	f.optional(obj, "token", &t.Token)
	f.optional(obj, "host", &t.Host)
	f.optional(obj, "user_id", &t.UserID)
	f.extra(obj, "token, host and user_id")
	return f.err()
}

// CustomSecret becomes an environment variable of the sandbox. A string is short for {secret}.
type CustomSecret struct {
	Secret       Opt[string]   `json:"secret,omitzero" format:"password" doc:"The value. Omitted, null or **********: keep the stored one. Empty: remove the secret."`
	Description  Opt[string]   `json:"description,omitzero" doc:"Purpose of the secret."`
	Repositories Opt[[]string] `json:"repositories,omitzero" doc:"Limit the secret to conversations on these repositories: host and path, such as github.com/octo/app. Omitted: unchanged. null or empty: all conversations."`
}

// UnmarshalJSON accepts both forms.
func (c *CustomSecret) UnmarshalJSON(b []byte) error {
	*c = CustomSecret{}
	if isString(b) {
		return json.Unmarshal(b, &c.Secret)
	}
	obj, err := object(b)
	if err != nil {
		return wrongType("model_type", "Send the value as a string, an object with secret, description and repositories, or null.")
	}
	var f faults
	f.optional(obj, "secret", &c.Secret)
	f.optional(obj, "description", &c.Description)
	f.optional(obj, "repositories", &c.Repositories)
	f.extra(obj, "secret, description and repositories")
	return f.err()
}

// Settings is the response of GET /api/settings: all fields, without secrets. Sending it
// back changes nothing.
type Settings struct {
	Language                            *string     `json:"language"`
	Agent                               *string     `json:"agent"`
	MaxIterations                       *int        `json:"max_iterations"`
	SecurityAnalyzer                    *string     `json:"security_analyzer"`
	ConfirmationMode                    *bool       `json:"confirmation_mode"`
	ApprovalMode                        string      `json:"approval_mode" enum:"always,risky,never" doc:"Derived from confirmation_mode and security_analyzer."`
	LLMModel                            *string     `json:"llm_model"`
	LLMAPIKey                           *string     `json:"llm_api_key" doc:"Always null; see llm_api_key_set."`
	LLMBaseURL                          *string     `json:"llm_base_url"`
	RemoteRuntimeResourceFactor         *int        `json:"remote_runtime_resource_factor"`
	SecretsStore                        SecretNames `json:"secrets_store"`
	EnableDefaultCondenser              bool        `json:"enable_default_condenser"`
	CondenserMaxSize                    *int        `json:"condenser_max_size"`
	EnableSoundNotifications            bool        `json:"enable_sound_notifications"`
	EnableProactiveConversationStarters bool        `json:"enable_proactive_conversation_starters"`
	EnableSolvabilityAnalysis           bool        `json:"enable_solvability_analysis"`
	UserConsentsToAnalytics             *bool       `json:"user_consents_to_analytics"`
	SandboxBaseContainerImage           *string     `json:"sandbox_base_container_image"`
	SandboxRuntimeContainerImage        *string     `json:"sandbox_runtime_container_image"`
	MCPConfig                           *MCPConfig  `json:"mcp_config" doc:"MCP servers, with api_key and env values masked."`
	SearchAPIKey                        *string     `json:"search_api_key" doc:"Always null; see search_api_key_set."`
	SandboxAPIKey                       *string     `json:"sandbox_api_key" doc:"Always null; see sandbox_api_key_set."`
	MaxBudgetPerTask                    *float64    `json:"max_budget_per_task"`
	Email                               *string     `json:"email"`
	EmailVerified                       *bool       `json:"email_verified"`
	GitUserName                         *string     `json:"git_user_name"`
	GitUserEmail                        *string     `json:"git_user_email"`

	LLMAPIKeySet      bool               `json:"llm_api_key_set" doc:"Whether an API key of the model provider is stored."`
	SearchAPIKeySet   bool               `json:"search_api_key_set" doc:"Whether an API key of the web search service is stored."`
	SandboxAPIKeySet  bool               `json:"sandbox_api_key_set" doc:"Whether an API key of a remote sandbox is stored."`
	ProviderTokensSet map[string]*string `json:"provider_tokens_set" doc:"Git providers with a stored token and their hosts; null for the provider's default host."`
}

// SecretNames is secrets_store in responses: names with masked values.
type SecretNames struct {
	ProviderTokens map[string]string `json:"provider_tokens"`
	CustomSecrets  map[string]string `json:"custom_secrets"`
}

// SettingsStored is the response of POST /api/settings. Message is always "Settings
// stored".
type SettingsStored struct {
	Message       string   `json:"message"`
	IgnoredFields []string `json:"ignored_fields,omitempty" doc:"Fields of the body that were not stored: unknown fields, and read-only fields that differ from the stored value."`
	Notes         []string `json:"notes,omitempty" doc:"Side effects of the change, such as a dropped key that belongs to another host."`
}

// Model is the model in the settings; "" if none is set.
func (s Settings) Model() string {
	if s.LLMModel == nil {
		return ""
	}
	return *s.LLMModel
}

// Asks says when the agent asks before a tool call: never, risky or always.
func (s Settings) Asks() string {
	switch {
	case s.ConfirmationMode == nil || !*s.ConfirmationMode:
		return "never"
	case s.SecurityAnalyzer == nil || *s.SecurityAnalyzer == "":
		return "always"
	}
	return "risky"
}
