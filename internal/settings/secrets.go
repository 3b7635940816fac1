package settings

import (
	"errors"

	"deckhand/api"
	"deckhand/internal/secret"
)

var (
	// ErrNoSecret says that there is no custom secret of this name.
	ErrNoSecret = errors.New("secret not found")
	// ErrSecretExists says that the name is taken.
	ErrSecretExists = errors.New("the secret already exists")
)

// AddSecret adds a custom secret, or fails with ErrSecretExists or a *api.ValidationError.
func (s *Settings) AddSecret(name, value, description string, repositories api.Opt[[]string]) error {
	m := &merger{}
	var only []string
	m.repositories(repositories, &only, "repositories")
	m.judge(checkSecretName(name), "name")
	m.judge(checkDescription(description), "description")
	if value == "" {
		m.refuse(&problem{"string_too_short", "The value of the secret is missing."}, "value")
	}
	m.judge(checkEnvValue(value), "value")
	if len(m.bad) > 0 {
		return &api.ValidationError{Detail: m.bad}
	}
	if _, taken := s.CustomSecrets[name]; taken {
		return ErrSecretExists
	}
	if len(s.CustomSecrets) >= maxCustomSecrets {
		return api.Invalid("too_long", "Too many custom secrets: the limit is 1000. Delete some.", "name")
	}
	if s.secretBytes()+len(value) > maxSecretBytes {
		return api.Invalid(tooMuch.typ, tooMuch.msg, "value")
	}
	if s.CustomSecrets == nil {
		s.CustomSecrets = map[string]CustomSecret{}
	}
	s.CustomSecrets[name] = CustomSecret{Value: secret.New(value), Description: description, Repositories: only}
	return nil
}

// tooMuch refuses what would not fit beside the user's other secrets.
var tooMuch = &problem{"too_long", "All custom secrets together must not exceed 128 KiB. Delete some, or store this one in a workspace file."}

// secretBytes is how long all secrets are together.
func (s *Settings) secretBytes() int {
	n := 0
	for _, v := range s.SecretValues() {
		n += len(v)
	}
	return n
}

// Unmasked says why a custom secret is not masked; "" says that it is.
func (c CustomSecret) Unmasked() string {
	why := secret.Weakness(c.Value.Reveal())
	if why == "" {
		return ""
	}
	return "This secret is stored and works, but it is not masked in output, because it " + why + "."
}

// EditSecret renames and describes a custom secret; its value stays. An omitted
// description stays too, null clears it. It fails with ErrNoSecret,
// ErrSecretExists or a *api.ValidationError.
func (s *Settings) EditSecret(old, name string, description api.Opt[string], repositories api.Opt[[]string]) error {
	c, ok := s.CustomSecrets[old]
	if !ok {
		return ErrNoSecret
	}
	m := &merger{}
	m.judge(checkSecretName(name), "name")
	m.part(description, &c.Description, checkDescription, "description")
	m.repositories(repositories, &c.Repositories, "repositories")
	if len(m.bad) > 0 {
		return &api.ValidationError{Detail: m.bad}
	}
	if _, taken := s.CustomSecrets[name]; taken && name != old {
		return ErrSecretExists
	}
	delete(s.CustomSecrets, old)
	s.CustomSecrets[name] = c
	return nil
}

// RemoveSecret removes a custom secret, or fails with ErrNoSecret.
func (s *Settings) RemoveSecret(name string) error {
	if _, ok := s.CustomSecrets[name]; !ok {
		return ErrNoSecret
	}
	delete(s.CustomSecrets, name)
	return nil
}

// judge files a problem, if there is one.
func (m *merger) judge(p *problem, path ...any) {
	if p != nil {
		m.refuse(p, path...)
	}
}
