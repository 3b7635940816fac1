package settings

import (
	"testing"

	"deckhand/api"
	"deckhand/internal/gitprovider"
)

// A provider's public host is where its token goes if no host is stored, so naming it
// keeps the token. Any other host drops it.
func TestPublicHostKeepsTheToken(t *testing.T) {
	t.Parallel()
	for _, d := range gitprovider.All() {
		if d.Host == "" {
			continue
		}
		stored, _, err := Merge(nil, tokenOf(d.Name, api.ProviderToken{Token: api.Some("t0ken-of-the-user")}))
		if err != nil {
			t.Fatal(err)
		}
		same, _, err := Merge(&stored, tokenOf(d.Name, api.ProviderToken{Host: api.Some(d.Host)}))
		if err != nil || same.ProviderTokens[d.Name].Token.IsZero() {
			t.Errorf("%s: naming %s dropped the token (%v)", d.Name, d.Host, err)
		}
		other, _, err := Merge(&stored, tokenOf(d.Name, api.ProviderToken{Host: api.Some("git.example.org")}))
		if err != nil || !other.ProviderTokens[d.Name].Token.IsZero() {
			t.Errorf("%s: the token went to another host (%v)", d.Name, err)
		}
	}
}

func tokenOf(provider string, t api.ProviderToken) api.SettingsInput {
	return api.SettingsInput{SecretsStore: api.Some(api.UserSecrets{ProviderTokens: map[string]*api.ProviderToken{provider: &t}})}
}
