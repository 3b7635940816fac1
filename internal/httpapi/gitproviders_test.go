package httpapi

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/git"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

func token(value, host string) settings.ProviderToken {
	return settings.ProviderToken{Token: secret.New(value), Host: host}
}

const toAdd = "/api/add-git-providers"

func TestTokensAreTriedAndMerged(t *testing.T) {
	s, with := newStreet(map[string]*place{"github": knows("11"), "gitlab": knows("22"), "gitea": knows("33")})
	r := newRig(t, with)
	a := r.do("POST", toAdd, `{"provider_tokens":{"github":{"token":"`+canary+`-1"},"gitlab":{"token":"`+canary+`-2","host":"git.example.org"}},"mcp_config":{"x":[1]}}`).want(t, 200)
	if a.body != `{"message":"Git providers stored"}` {
		t.Errorf("%s", a.body)
	}
	// A client that sends every provider, and only one of them new, changes only that one.
	r.do("POST", toAdd, `{"provider_tokens":{"github":{"token":"","host":""},"gitlab":{"token":null,"host":"git.example.org"},"gitea":"`+canary+`-3","bitbucket":{"token":"","host":""}}}`).want(t, 200)
	got := r.storedTokens(t)
	for name, want := range map[string][3]string{"github": {canary + "-1", "", "11"}, "gitlab": {canary + "-2", "git.example.org", "22"}, "gitea": {canary + "-3", "", "33"}} {
		if have := got[name]; have.Token.Reveal() != want[0] || have.Host != want[1] || have.UserID != want[2] {
			t.Errorf("%s: %q %+v", name, have.Token.Reveal(), have)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d are stored", len(got))
	}
	if opened := s.take(); len(opened) != 3 || !strings.Contains(strings.Join(opened, ","), "gitlab git.example.org "+canary+"-2") {
		t.Errorf("asked: %d", len(opened))
	}
	// What is stored already is not tried again; a token does not move to another host.
	r.do("POST", toAdd, `{"provider_tokens":{"github":"`+canary+`-1"}}`).want(t, 200)
	r.do("POST", toAdd, `{"provider_tokens":{"gitlab":{"host":"evil.example"}}}`).want(t, 200, "token for gitlab was dropped")
	if opened := s.take(); len(opened) != 0 || !r.storedTokens(t)["gitlab"].Token.IsZero() {
		t.Errorf("asked: %d", len(opened))
	}
	r.do("POST", toAdd, `{"provider_tokens":{"svn":"x"}}`).want(t, 422, `["body","provider_tokens","svn"]`)
	r.do("POST", toAdd, `{"provider_tokens":{"github":7}}`).want(t, 422, `"provider_tokens","github"`)
	r.do("POST", toAdd, `{}`).want(t, 200)
	if strings.Contains(r.logs.String(), canary) {
		t.Error("a token is in the log")
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	outage := failing("bitbucket", gitprovider.Unavailable)
	limited := failing("bitbucket", gitprovider.RateLimited)
	limited.RetryAfter = 90 * time.Second
	for name, c := range map[string]struct {
		hosts  map[string]*place
		body   string
		status int
		parts  []string
	}{
		"wrong": {map[string]*place{"github": answers(failing("github", gitprovider.BadToken))}, `{"github":"x"}`, 401,
			[]string{`{"error":"Invalid token. Please make sure it is a valid github token.","msg_id":"STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR","detail":["github: GitHub rejected`}},
		"two wrong, one good": {map[string]*place{"github": answers(failing("github", gitprovider.BadToken)), "gitea": knows("1"), "gitlab": answers(failing("gitlab", gitprovider.Scope))},
			`{"github":"x","gitlab":"y","gitea":"z"}`, 401, []string{`valid github token."`, `"detail":["github: `, `"gitlab: The token stored for GitLab is not allowed`}},
		"wrong and away": {map[string]*place{"github": answers(failing("github", gitprovider.BadToken)), "bitbucket": answers(outage)}, `{"github":"x","bitbucket":"y"}`, 401, []string{"valid github token"}},
		"away":           {map[string]*place{"github": knows("1"), "bitbucket": answers(outage)}, `{"github":"x","bitbucket":"y"}`, 503, []string{"Bitbucket is not responding", "Nothing was stored."}},
		"too often":      {map[string]*place{"bitbucket": answers(limited)}, `{"bitbucket":"y"}`, 503, []string{"Rate limited"}},
		"no host":        {nil, `{"enterprise_sso":"x"}`, 401, []string{"valid enterprise_sso token", "No host is stored"}},
		"no git host":    {map[string]*place{"gitlab": answers(failing("gitlab", gitprovider.Unsupported))}, `{"gitlab":"x"}`, 401, []string{"valid gitlab token"}},
		"no such thing":  {map[string]*place{"gitlab": answers(failing("gitlab", gitprovider.NotFound))}, `{"gitlab":"x"}`, 401, []string{"valid gitlab token"}},
		"blocked": {map[string]*place{"github": answers(failing("github", gitprovider.BadToken)), "gitlab": answers(failing("gitlab", gitprovider.Blocked))}, `{"github":"x","gitlab":"y"}`, 422,
			[]string{`{"detail":[{"loc":["body","provider_tokens","gitlab","host"],"msg":"The address of GitLab is not allowed.","type":"value_error"}],"msg_id":"REQUEST$BAD"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, with := newStreet(c.hosts)
			r := newRig(t, with)
			a := r.do("POST", toAdd, `{"provider_tokens":`+c.body+`}`).want(t, c.status, c.parts...)
			if name == "too often" && a.header.Get("Retry-After") != "90" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
			r.do("GET", "/api/settings", "").want(t, 404) // nothing at all was stored
		})
	}
}

// Settings can be stored while a provider is away, but not with a token that it refuses.
func TestTokensInSettings(t *testing.T) {
	_, with := newStreet(map[string]*place{"github": knows("11"), "gitlab": answers(failing("gitlab", gitprovider.BadToken)), "gitea": answers(failing("gitea", gitprovider.Unavailable)), "forgejo": answers(failing("forgejo", gitprovider.Blocked))})
	r := newRig(t, with)
	tokens := func(s string) string { return `{"language":"de","secrets_store":{"provider_tokens":` + s + `}}` }
	if a := r.do("POST", toSettings, tokens(`{"github":"`+canary+`"}`)).want(t, 200); a.body != `{"message":"Settings stored"}` {
		t.Errorf("%s", a.body)
	}
	if got := r.storedTokens(t)["github"]; got.UserID != "11" {
		t.Errorf("%+v", got)
	}
	r.do("POST", toSettings, tokens(`{"gitlab":"`+canary+`","github":null}`)).want(t, 422, `["body","secrets_store","provider_tokens","gitlab","token"]`, "GitLab rejected")
	r.do("POST", toSettings, tokens(`{"forgejo":{"token":"`+canary+`","host":"git.example"}}`)).want(t, 422, `["body","secrets_store","provider_tokens","forgejo","host"]`, "not allowed")
	if len(r.storedTokens(t)) != 1 {
		t.Error("half of a refused update was stored")
	}
	r.do("POST", toSettings, tokens(`{"gitea":"`+canary+`"}`)).want(t, 200, `"notes":["The token for gitea was stored but not checked`)
	if got := r.storedTokens(t)["gitea"]; got.Token.Reveal() != canary || got.UserID != "" {
		t.Errorf("%+v", got)
	}
	if strings.Contains(r.logs.String(), canary) {
		t.Error("a token is in the log")
	}
}

// A provider that never answers is waited for a bounded time only.
func TestSilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &place{user: func(ctx context.Context) (gitprovider.User, error) {
			<-ctx.Done()
			return gitprovider.User{}, ctx.Err()
		}}
		s := &street{hosts: map[string]*place{"github": silent}}
		keyring, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
		if err != nil {
			t.Fatal(err)
		}
		d := New(Config{Conversations: conversations.Config{Settings: settings.New(settings.NewMemStore(), keyring, secret.NewRedactor())}, Git: git.Config{Forge: s.open}})
		defer d.Close()
		update := api.SettingsInput{SecretsStore: api.Some(api.UserSecrets{ProviderTokens: map[string]*api.ProviderToken{"github": {Token: api.Some("x")}}})}
		begin := time.Now()
		notes, err := d.git.CheckTokens(t.Context(), "ada", update)
		if err != nil || len(notes) != 1 || time.Since(begin) != 5*time.Second {
			t.Errorf("%v %v after %v", notes, err, time.Since(begin))
		}
	})
}

func TestUnsetTokens(t *testing.T) {
	_, with := newStreet(nil)
	r := newRig(t, with)
	r.do("POST", "/api/unset-provider-tokens", "").want(t, 200, `{"message":"Unset Git provider tokens"}`)
	r.do("GET", toSettings, "").want(t, 404)
	r.do("POST", "/api/secrets", `{"name":"NPM","value":"x"}`).want(t, 201)
	r.do("POST", toSettings, `{"language":"de"}`).want(t, 200)
	r.do("POST", "/api/unset-provider-tokens", "").want(t, 200)
	for _, p := range []string{"github", "gitlab"} {
		err := r.api.Conversations.Settings.Change(t.Context(), "ada", func(s *settings.Settings) error {
			if s.ProviderTokens == nil {
				s.ProviderTokens = map[string]settings.ProviderToken{}
			}
			s.ProviderTokens[p] = token("x", "")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.do("POST", "/api/unset-provider-tokens", "").want(t, 200)
	got := decoded[api.Settings](t, r.do("GET", toSettings, ""))
	if len(got.ProviderTokensSet) != 0 || len(got.SecretsStore.CustomSecrets) != 1 || *got.Language != "de" {
		t.Errorf("%+v", got)
	}
	r.do("POST", "/api/reset-settings", "").want(t, 410, `"error":"Reset settings functionality has been removed."`)
}
