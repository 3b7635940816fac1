package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"deckhand/internal/httpapi/rest"
)

// amend changes what the generator made where the wire accepts more than the Go type shows.
func amend(r huma.Registry) {
	all := r.Map()
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
	// The enum keeps the providers that the API had at first, for clients generated from it.
	for _, name := range []string{"CreateConversation", "SuggestedTask", "CreateMicroagent"} {
		if s := all[name]; s != nil {
			rest.KeepFounding(s.Properties["git_provider"])
		}
	}
	rest.DescribeEvents(r)
	for _, s := range all {
		s.PrecomputeMessages()
	}
}

func limit(s *huma.Schema, n int) {
	s.MaxItems = &n
	s.Nullable = false
}
