package settings

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/secret"
)

// ModelProvider is how a user reaches a provider of models.
type ModelProvider struct {
	Key     secret.Secret
	BaseURL string // "" for the provider's own
}

// ModelRoles are the models for particular purposes, and the favourites.
type ModelRoles struct {
	Small      string   `json:"small_model,omitempty"`
	Fallback   string   `json:"fallback_model,omitempty"`
	Favourites []string `json:"favourite_models,omitempty"`
}

const (
	maxModelProviders = 50
	maxFavourites     = 200
)

var providerID = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// unkeyed are providers inside the server, which no key is for.
var unkeyed = []string{"", "scripted", "cassette"}

// SetModelProvider changes the entry of a provider, or adds one. home is the base URL that the provider has without one
// in the entry, "" if it needs one. A key belongs to the host it was given for: notes say when it was dropped. It
// fails with a *api.ValidationError.
func (s *Settings) SetModelProvider(id, home string, in api.SetModelProvider) (notes []string, err error) {
	m := &merger{}
	p, stored := s.ModelProviders[id]
	if !providerID.MatchString(id) || slices.Contains(unkeyed, id) {
		m.refuse(&problem{"value_error", "Must be a short name in lower case: letters, digits and . _ -. It stands before the slash in model names."}, "provider_id")
	}
	if !stored && len(s.ModelProviders) >= maxModelProviders {
		m.refuse(&problem{"too_long", "Too many providers: the limit is 50. Remove some."}, "provider_id")
	}
	before := origin(first(p.BaseURL, home))
	m.part(in.BaseURL, &p.BaseURL, checkURL, "base_url")
	sent := m.key("api_key", in.APIKey, &p.Key)
	if p.BaseURL == "" && home == "" && len(m.bad) == 0 {
		m.refuse(&problem{"missing", "This provider needs a base URL."}, "base_url")
	}
	if !sent && !p.Key.IsZero() && origin(first(p.BaseURL, home)) != before {
		p.Key = secret.Secret{}
		notes = append(notes, "The stored key was dropped, because the host in the base URL changed. Enter the key again.")
	}
	if len(m.bad) > 0 {
		return nil, &api.ValidationError{Detail: m.bad}
	}
	if s.ModelProviders == nil {
		s.ModelProviders = map[string]ModelProvider{}
	}
	s.ModelProviders[id] = p
	if s.secretBytes() > maxSecretBytes {
		return nil, api.Invalid(tooMuch.typ, tooMuch.msg, "api_key")
	}
	return notes, nil
}

// SetModelRoles changes the roles. Omitted fields keep their values. It fails with a *api.ValidationError.
func (s *Settings) SetModelRoles(in api.SetModelRoles) error {
	m, r := &merger{}, s.ModelRoles
	m.part(in.Small, &r.Small, checkModel, "small_model")
	m.part(in.Fallback, &r.Fallback, checkModel, "fallback_model")
	if in.Favourites.Set {
		r.Favourites = nil
		for i, name := range in.Favourites.Value {
			m.judge(checkModel(name), "favourite_models", i)
			if name != "" && !slices.Contains(r.Favourites, name) {
				r.Favourites = append(r.Favourites, name)
			}
		}
		if len(r.Favourites) > maxFavourites {
			m.refuse(&problem{"too_long", "Too many favourites: the limit is 200. Remove some."}, "favourite_models")
		}
	}
	if len(m.bad) > 0 {
		return &api.ValidationError{Detail: m.bad}
	}
	s.ModelRoles = r
	return nil
}

// compact puts a key that is a JSON object, such as the key file of a service account, on one line.
func compact(key string) string {
	var out bytes.Buffer
	if !strings.HasPrefix(strings.TrimSpace(key), "{") || json.Compact(&out, []byte(key)) != nil {
		return key
	}
	return out.String()
}

// parts returns the secrets inside a key that is a JSON object.
func parts(key string) []string {
	var fields map[string]any
	if !strings.HasPrefix(key, "{") || json.Unmarshal([]byte(key), &fields) != nil {
		return nil
	}
	var out []string
	for name, v := range fields {
		name = strings.ToLower(name)
		if s, ok := v.(string); ok && s != "" && !strings.HasSuffix(name, "id") && (strings.Contains(name, "key") || strings.Contains(name, "token") && !strings.Contains(name, "uri")) {
			out = append(out, s)
		}
	}
	return out
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
