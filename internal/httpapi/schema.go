package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/settings"
)

// newRegistry makes schemas of Go types. The types of package api know nothing
// of OpenAPI, so what reflection alone gets wrong is said here.
func newRegistry() huma.Registry {
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	alias[string](r)
	alias[bool](r)
	alias[int](r)
	alias[int64](r)
	alias[float64](r)
	alias[[]string](r)
	alias[map[string]any](r)
	alias[api.MCPConfig](r)
	alias[api.UserSecrets](r)
	alias[api.SuggestedTask](r)
	alias[api.Solvability](r)
	alias[api.CreateMicroagent](r)
	alias[map[string]string](r)
	alias[api.EventFilter](r)
	return r
}

// alias makes api.Opt[T] look like T or null.
func alias[T any](r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[api.Opt[T]](), reflect.TypeFor[nullable[T]]())
}

type nullable[T any] struct{}

// Schema implements huma.SchemaProvider. Whether a field refuses null after
// all is a tag (nullable:"false") on the field.
func (nullable[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	if s.Ref != "" {
		return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}}
	}
	c := *s
	c.Nullable = true
	return &c
}

// amend changes what the generator made where the wire accepts more than the Go type shows.
func amend(r huma.Registry) {
	all := r.Map()
	if s := all["SettingsInput"]; s != nil {
		s.AdditionalProperties = true // unknown fields are reported in the answer, not refused
		fresh := settings.Defaults()
		for name, v := range map[string]bool{"enable_default_condenser": fresh.EnableDefaultCondenser, "enable_sound_notifications": fresh.EnableSoundNotifications,
			"enable_proactive_conversation_starters": fresh.EnableProactiveConversationStarters, "enable_solvability_analysis": fresh.EnableSolvabilityAnalysis} {
			s.Properties[name].Default = v
		}
	}
	if s := all["Settings"]; s != nil { // nothing stored is null
		s.Properties["mcp_config"] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties["mcp_config"], {Type: "null"}}}
	}
	str := &huma.Schema{Type: huma.TypeString}
	secret := &huma.Schema{Type: huma.TypeString, Format: "password"}
	// A tool server may be just its address, a token just its text.
	if s := all["MCPConfig"]; s != nil {
		for _, list := range []string{"sse_servers", "shttp_servers"} {
			p := s.Properties[list]
			p.Items = &huma.Schema{AnyOf: []*huma.Schema{p.Items, str}}
			limit(p, 100)
		}
		limit(s.Properties["stdio_servers"], 100)
	}
	if s := all["StdioServer"]; s != nil {
		s.Properties["args"] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties["args"], str}, Description: s.Properties["args"].Description}
		s.Properties["env"] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties["env"], str}, Description: s.Properties["env"].Description}
	}
	for _, at := range [][2]string{{"UserSecrets", "provider_tokens"}, {"UserSecrets", "custom_secrets"}, {"AddGitProviders", "provider_tokens"}} {
		if s := all[at[0]]; s != nil {
			p := s.Properties[at[1]]
			p.AdditionalProperties = &huma.Schema{AnyOf: []*huma.Schema{p.AdditionalProperties.(*huma.Schema), secret, {Type: "null"}}}
		}
	}
	// The founding document names four providers; there are more by now, and its
	// readers shall find it as it was.
	for _, name := range []string{"CreateConversation", "SuggestedTask", "CreateMicroagent"} {
		if s := all[name]; s != nil {
			p := s.Properties["git_provider"]
			p.Enum, p.Extensions = p.Enum[:4:4], map[string]any{alsoAccepted: p.Enum[4:]}
		}
	}
	for _, s := range all {
		s.PrecomputeMessages()
	}
}

// alsoAccepted is where a schema lists what is taken beside its enum.
const alsoAccepted = "x-also-accepted"

// allowed is everything that a schema with an enum takes.
func allowed(s *huma.Schema) []any {
	more, _ := s.Extensions[alsoAccepted].([]any)
	return append(s.Enum[:len(s.Enum):len(s.Enum)], more...)
}

func limit(s *huma.Schema, n int) {
	s.MaxItems = &n
	s.Nullable = false
}
