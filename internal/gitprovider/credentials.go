package gitprovider

import (
	"encoding/base64"
	"strings"
)

// Credentials are the ways to show a provider's git a token, as the header
// Authorization has them; the first that is accepted counts. Git over HTTP wants
// a user as well, whose name tells some hosts what kind of token it is. ownHost
// says that the host is not the provider's public one.
func Credentials(provider, token string, ownHost bool) []string {
	if strings.Contains(token, ":") { // user:password, as Bitbucket's app passwords are
		return []string{Basic(token)}
	}
	if show := Describe(provider).Credentials; show != nil {
		return show(token, ownHost)
	}
	return []string{Basic("oauth2:" + token)}
}

// Basic is the header Authorization for a user and a password, with a colon between.
func Basic(pair string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}
