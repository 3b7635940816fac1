package gitgate

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/secret"
)

// ErrNoToken means that the owner of the sandbox has no token for the site.
var ErrNoToken = errors.New("no token is stored for this host")

// Grant is what a sandbox may do at a site.
type Grant struct {
	// Credentials are Authorization headers, the likeliest first: a token does not
	// say which of them it is for.
	Credentials []secret.Secret
	// Confined is true when pushes may go to the repository Own alone.
	Confined bool
	Own      string // owner/name, "" if it is at another site
}

// MayWrite says whether a repository may be changed.
func (g Grant) MayWrite(repository string) bool {
	if !g.Confined {
		return true
	}
	// Data centers of Bitbucket have their repositories below scm.
	return g.Own != "" && (strings.EqualFold(repository, g.Own) || strings.EqualFold(repository, "scm/"+g.Own))
}

// Credentials are the ways to show a provider a token.
func Credentials(provider, token string, ownHost bool) []secret.Secret {
	var out []secret.Secret
	for _, c := range gitprovider.Credentials(provider, token, ownHost) {
		out = append(out, secret.New(c))
	}
	return out
}

// Hide removes the credentials, in every form they are known in, from a text
// that goes into the sandbox.
func (g Grant) Hide(text string) string {
	for _, s := range g.spellings() {
		text = strings.ReplaceAll(text, s, secret.Mask)
	}
	return text
}

// spellings are longest first, so that none hides a part of another.
func (g Grant) spellings() []string {
	var all []string
	for _, c := range g.Credentials {
		_, value, _ := strings.Cut(c.Reveal(), " ")
		all = append(all, value)
		if pair, err := base64.StdEncoding.DecodeString(value); err == nil {
			if _, password, ok := strings.Cut(string(pair), ":"); ok {
				all = append(all, password)
			}
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}
