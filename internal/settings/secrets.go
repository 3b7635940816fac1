package settings

import (
	"errors"

	"deckhand/api"
	"deckhand/internal/secret"
)

var (
	// ErrNoSecret says that there is no custom secret of this name.
	ErrNoSecret = errors.New("no such secret")
	// ErrSecretExists says that the name is taken.
	ErrSecretExists = errors.New("the secret exists already")
)

// AddSecret adds a custom secret, or fails with ErrSecretExists or a *api.ValidationError.
func (s *Settings) AddSecret(name, value, description string) error {
	m := &merger{}
	m.judge(checkSecretName(name), "name")
	m.judge(checkDescription(description), "description")
	if value == "" {
		m.refuse(&problem{"string_too_short", "A secret has a value. Send it."}, "value")
	}
	m.judge(checkEnvValue(value), "value")
	if len(m.bad) > 0 {
		return &api.ValidationError{Detail: m.bad}
	}
	if _, taken := s.CustomSecrets[name]; taken {
		return ErrSecretExists
	}
	if len(s.CustomSecrets) >= maxCustomSecrets {
		return api.Invalid("too_long", "There are 1000 custom secrets already. Remove some.", "name")
	}
	if s.CustomSecrets == nil {
		s.CustomSecrets = map[string]CustomSecret{}
	}
	s.CustomSecrets[name] = CustomSecret{Value: secret.New(value), Description: description}
	return nil
}

// EditSecret renames and describes a custom secret; its value stays. An omitted
// description stays too, null clears it. It fails with ErrNoSecret,
// ErrSecretExists or a *api.ValidationError.
func (s *Settings) EditSecret(old, name string, description api.Opt[string]) error {
	c, ok := s.CustomSecrets[old]
	if !ok {
		return ErrNoSecret
	}
	m := &merger{}
	m.judge(checkSecretName(name), "name")
	m.part(description, &c.Description, checkDescription, "description")
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
