package git

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

const aboutAddProviders = "Each new token is checked before anything is stored. If providers reject their tokens, the response is a 401 that names them; " +
	"if a provider does not respond, it is a 503; if the server may not connect to a host, it is a 422. In each case nothing is stored. Providers that are not in the body keep their stored tokens."

const (
	verifyTime = 10 * time.Second // for the providers, when nothing is stored without them
	noteTime   = 5 * time.Second  // when it is stored all the same
)

func (d *Handlers) addGitProviders(ctx context.Context, c *rest.Call, _ rest.None, in api.AddGitProviders) (api.GitProvidersStored, error) {
	tokens := map[string]*api.ProviderToken{}
	for name, t := range in.ProviderTokens {
		if t != nil && t.Token.Value == "" { // here it does not clear: older clients send every provider
			kept := *t
			kept.Token = api.Opt[string]{}
			t = &kept
		}
		tokens[name] = t
	}
	update := api.SettingsInput{SecretsStore: api.Some(api.UserSecrets{ProviderTokens: tokens})}
	verdicts, err := d.verifyTokens(ctx, c.Who.User, update, verifyTime)
	if err != nil {
		return api.GitProvidersStored{}, shorter(err)
	}
	if err := refusal(verdicts); err != nil {
		return api.GitProvidersStored{}, err
	}
	pin(update, verdicts)
	changes, err := d.Settings.Update(ctx, c.Who.User, update)
	return api.GitProvidersStored{Message: "Git providers stored", Notes: changes.Notes}, shorter(err)
}

// shorter moves complaints to where the field is in this body.
func shorter(err error) error {
	if invalid, ok := errors.AsType[*api.ValidationError](err); ok {
		for i, f := range invalid.Detail {
			if len(f.Loc) > 1 && f.Loc[1] == "secrets_store" {
				invalid.Detail[i].Loc = slices.Delete(slices.Clone(f.Loc), 1, 2)
			}
		}
	}
	return err
}

var errNothing = errors.New("there is nothing to change")

func (d *Handlers) unsetProviderTokens(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Done, error) {
	err := d.Settings.Change(ctx, c.Who.User, func(s *settings.Settings) error {
		if len(s.ProviderTokens) == 0 {
			return errNothing
		}
		s.ProviderTokens = nil
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return api.Done{Message: "Unset Git provider tokens"}, err
}

// verdict is what a provider says of a token.
type verdict struct {
	provider, host string
	user           gitprovider.User
	err            error
}

// bad says that the token will not do: the provider said so, and did not just fail to answer.
func (v verdict) bad() bool {
	switch gitprovider.ReasonOf(v.err) {
	case gitprovider.BadToken, gitprovider.Scope, gitprovider.NotFound, gitprovider.Refused, gitprovider.Unsupported:
		return true
	}
	return false
}

// verifyTokens tries the tokens that an update would store, each at the host it
// would be stored for. What is stored already is not tried again.
func (d *Handlers) verifyTokens(ctx context.Context, user string, update api.SettingsInput, within time.Duration) ([]verdict, error) {
	sent, _ := update.SecretsStore.Get()
	if len(sent.ProviderTokens) == 0 || d.Forge == nil {
		return nil, nil
	}
	var old *settings.Settings
	stored, err := d.Settings.Get(ctx, user)
	if err == nil {
		old = &stored
	} else if !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	next, _, err := settings.Merge(old, update)
	if err != nil {
		return nil, err
	}
	if d.Redact != nil {
		d.Redact(next.SecretValues()...)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var wg sync.WaitGroup
	var verdicts []*verdict
	for _, name := range slices.Sorted(maps.Keys(sent.ProviderTokens)) {
		t, before := next.ProviderTokens[name], stored.ProviderTokens[name]
		if t.Token.IsZero() || t.Token.Reveal() == before.Token.Reveal() && t.Host == before.Host {
			continue
		}
		v := &verdict{provider: name, host: t.Host}
		verdicts = append(verdicts, v)
		wg.Go(func() {
			var p gitprovider.Provider
			if p, v.err = d.Forge(ctx, name, t); v.err == nil {
				v.user, v.err = p.User(ctx)
			}
			v.err = forgeError(name, t.Host, v.err)
		})
	}
	wg.Wait()
	out := make([]verdict, len(verdicts))
	for i, v := range verdicts {
		out[i] = *v
	}
	return out, nil
}

// pin writes the owners of the tokens into the update, and the hosts they were verified at: if
// the host changes, the token must not be sent there.
func pin(update api.SettingsInput, verdicts []verdict) {
	for _, v := range verdicts {
		t := update.SecretsStore.Value.ProviderTokens[v.provider]
		t.Host = api.Some(v.host)
		if v.err == nil && v.user.ID != "" {
			t.UserID = api.Some(v.user.ID)
		}
	}
}

// blocked are the hosts that this server may not connect to. at is where the body has
// the tokens.
func blocked(verdicts []verdict, at ...any) (bad []api.FieldError) {
	for _, v := range verdicts {
		if gitprovider.ReasonOf(v.err) == gitprovider.Blocked {
			bad = append(bad, api.FieldError{Loc: append(slices.Clone(at), v.provider, "host"), Type: "value_error", Msg: v.err.Error()})
		}
	}
	return bad
}

// refusal is the answer when tokens cannot be stored: because they are wrong, or because they
// cannot be verified.
func refusal(verdicts []verdict) error {
	if bad := blocked(verdicts, "body", "provider_tokens"); len(bad) > 0 {
		return &api.ValidationError{Detail: bad}
	}
	wrong := api.InvalidTokens{MsgID: api.CodeGitAuthentication}
	var away error
	for _, v := range verdicts {
		switch {
		case v.bad():
			if wrong.Error == "" {
				wrong.Error = "Invalid token. Please make sure it is a valid " + v.provider + " token."
			}
			wrong.Detail = append(wrong.Detail, v.provider+": "+v.err.Error())
		case v.err != nil && away == nil:
			away = v.err
		}
	}
	if len(wrong.Detail) > 0 {
		return &rest.Fault{Status: http.StatusUnauthorized, Code: wrong.MsgID, Msg: wrong.Error, Body: wrong}
	}
	if e, ok := errors.AsType[*gitprovider.Error](away); ok {
		f, _ := errors.AsType[*rest.Fault](forgeFault(e))
		f.Status, f.Code, f.Msg = http.StatusServiceUnavailable, api.CodeUnavailable, e.Message+" Nothing was stored."
		return f
	}
	return away
}

// CheckTokens tries the tokens in a settings update. Wrong ones are refused; a
// provider that does not answer does not prevent storing settings.
func (d *Handlers) CheckTokens(ctx context.Context, user string, in api.SettingsInput) (notes []string, err error) {
	verdicts, err := d.verifyTokens(ctx, user, in, noteTime)
	if err != nil {
		return nil, err
	}
	bad := blocked(verdicts, "body", "secrets_store", "provider_tokens")
	for _, v := range verdicts {
		switch {
		case gitprovider.ReasonOf(v.err) == gitprovider.Blocked:
		case v.bad():
			bad = append(bad, api.FieldError{Loc: []any{"body", "secrets_store", "provider_tokens", v.provider, "token"}, Type: "value_error", Msg: v.err.Error()})
		case v.err != nil:
			d.Logger.WarnContext(ctx, "token stored without a check", "provider", v.provider, "user", user, "error", v.err)
			notes = append(notes, "The token for "+v.provider+" was stored but not checked, because the provider did not respond.")
		}
	}
	if len(bad) > 0 {
		return nil, &api.ValidationError{Detail: bad}
	}
	pin(in, verdicts)
	return notes, nil
}
