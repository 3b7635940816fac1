package settings

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"deckhand/api"
)

// Plain are the settings without a secret. They have the same names on the wire and in
// the store, so a new one needs a field in api, a field and a line in this file, the code
// that obeys it and its form field. A nil pointer is null on the wire.
type Plain struct {
	Language                            *string  `json:"language,omitempty"`
	Agent                               *string  `json:"agent,omitempty"`
	MaxIterations                       *int     `json:"max_iterations,omitempty"`
	CondenserMaxSize                    *int     `json:"condenser_max_size,omitempty"`
	SecurityAnalyzer                    *string  `json:"security_analyzer,omitempty"`
	ConfirmationMode                    *bool    `json:"confirmation_mode,omitempty"`
	LLMModel                            *string  `json:"llm_model,omitempty"`
	LLMBaseURL                          *string  `json:"llm_base_url,omitempty"`
	RemoteRuntimeResourceFactor         *int     `json:"remote_runtime_resource_factor,omitempty"`
	EnableDefaultCondenser              bool     `json:"enable_default_condenser"`
	EnableSoundNotifications            bool     `json:"enable_sound_notifications"`
	EnableProactiveConversationStarters bool     `json:"enable_proactive_conversation_starters"`
	EnableSolvabilityAnalysis           bool     `json:"enable_solvability_analysis"`
	UserConsentsToAnalytics             *bool    `json:"user_consents_to_analytics,omitempty"`
	SandboxBaseContainerImage           *string  `json:"sandbox_base_container_image,omitempty"`
	SandboxRuntimeContainerImage        *string  `json:"sandbox_runtime_container_image,omitempty"`
	MaxBudgetPerTask                    *float64 `json:"max_budget_per_task,omitempty"`
	Email                               *string  `json:"email,omitempty"`
	EmailVerified                       *bool    `json:"email_verified,omitempty"`
	GitUserName                         *string  `json:"git_user_name,omitempty"`
	GitUserEmail                        *string  `json:"git_user_email,omitempty"`
}

// Defaults returns the settings of a user who has not stored any.
func Defaults() Settings {
	return Settings{Plain: Plain{EnableDefaultCondenser: true, EnableProactiveConversationStarters: true, EnableSolvabilityAnalysis: true}}
}

// plain merges the fields, except llm_base_url, which belongs to a key.
func (m *merger) plain(s *Plain, in api.SettingsInput) {
	m.text("language", in.Language, &s.Language, checkLanguage)
	m.text("agent", in.Agent, &s.Agent, oneOf(Agents))
	number(m, "condenser_max_size", in.CondenserMaxSize, &s.CondenserMaxSize, checkCondenserSize)
	number(m, "max_iterations", in.MaxIterations, &s.MaxIterations, checkIterations)
	m.text("security_analyzer", in.SecurityAnalyzer, &s.SecurityAnalyzer, oneOf(SecurityAnalyzers))
	number(m, "confirmation_mode", in.ConfirmationMode, &s.ConfirmationMode, anyBool)
	m.text("llm_model", nullKeeps(in.LLMModel), &s.LLMModel, checkModel)
	number(m, "remote_runtime_resource_factor", in.RemoteRuntimeResourceFactor, &s.RemoteRuntimeResourceFactor, checkFactor)
	m.flag("enable_default_condenser", in.EnableDefaultCondenser, &s.EnableDefaultCondenser)
	m.flag("enable_sound_notifications", in.EnableSoundNotifications, &s.EnableSoundNotifications)
	m.flag("enable_proactive_conversation_starters", in.EnableProactiveConversationStarters, &s.EnableProactiveConversationStarters)
	m.flag("enable_solvability_analysis", in.EnableSolvabilityAnalysis, &s.EnableSolvabilityAnalysis)
	number(m, "user_consents_to_analytics", nullKeeps(in.UserConsentsToAnalytics), &s.UserConsentsToAnalytics, anyBool)
	m.text("sandbox_base_container_image", in.SandboxBaseContainerImage, &s.SandboxBaseContainerImage, checkImage)
	m.text("sandbox_runtime_container_image", in.SandboxRuntimeContainerImage, &s.SandboxRuntimeContainerImage, checkImage)
	number(m, "max_budget_per_task", in.MaxBudgetPerTask, &s.MaxBudgetPerTask, checkBudget)
	m.text("email", in.Email, &s.Email, checkEmail)
	number(m, "email_verified", in.EmailVerified, &s.EmailVerified, anyBool)
	m.text("git_user_name", in.GitUserName, &s.GitUserName, checkGitName)
	m.text("git_user_email", in.GitUserEmail, &s.GitUserEmail, checkGitEmail)
}

// Confirms reports whether tool calls need an approval.
func (p Plain) Confirms() bool { return p.ConfirmationMode != nil && *p.ConfirmationMode }

// AskWhenRisky makes the agent ask before calls that the rules rate as risky, unless the settings say when it asks.
func (p *Plain) AskWhenRisky() {
	if p.ConfirmationMode == nil {
		p.ConfirmationMode = new(true)
		p.SecurityAnalyzer = cmp.Or(p.SecurityAnalyzer, new("rules"))
	}
}

// Ask makes the agent ask before all calls (always), those that are risky (risky) or none (never). "" changes nothing.
func (p *Plain) Ask(when string) {
	switch when {
	case "always":
		p.ConfirmationMode, p.SecurityAnalyzer = new(true), nil
	case "risky":
		p.ConfirmationMode = new(true)
		if p.SecurityAnalyzer == nil || *p.SecurityAnalyzer == "" {
			p.SecurityAnalyzer = new("rules")
		}
	case "never":
		p.ConfirmationMode = new(false)
	}
}

// Endpoint is the model and the base URL; nil for those that are not set.
func (p Plain) Endpoint() (model, baseURL *string) { return p.LLMModel, p.LLMBaseURL }

// keyProvider is the provider that a key for the model in the settings belongs to, "" for none.
func (p Plain) keyProvider() string {
	name, _, named := strings.Cut(deref(p.LLMModel), "/")
	if name = strings.ToLower(name); !named || slices.Contains(unkeyed, name) {
		return ""
	}
	return name
}

// Image returns the image of the sandbox, or "" for the default. A prepared image already
// has the runner.
func (p Plain) Image() (name string, prepared bool) {
	if name = deref(p.SandboxRuntimeContainerImage); name != "" {
		return name, true
	}
	return deref(p.SandboxBaseContainerImage), false
}

// ClearImage chooses the default image.
func (p *Plain) ClearImage() {
	p.SandboxBaseContainerImage, p.SandboxRuntimeContainerImage = nil, nil
}

// Values returns the fields that are not null by their names on the wire.
func (p Plain) Values() map[string]any {
	values := map[string]any{}
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f := reflect.Indirect(v.Field(i)); f.IsValid() {
			values[name] = f.Interface()
		}
	}
	return values
}

// clone returns a copy that shares no pointer.
func (p Plain) clone() Plain {
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			value := f.Elem()
			f.Set(reflect.New(value.Type()))
			f.Elem().Set(value)
		}
	}
	return p
}

// show copies the fields to the fields of the same name on the wire.
func (p Plain) show(out *api.Settings) {
	from, to := reflect.ValueOf(p), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		to.FieldByName(from.Type().Field(i).Name).Set(from.Field(i))
	}
}
