package gitprovider

import (
	"encoding/base64"
	"strings"
)

// Credentials returns the Authorization headers to try for git, in order. Git over HTTP
// also needs a user name, which tells some hosts the kind of token. ownHost is set if the
// host is not the provider's public one.
func Credentials(provider, token string, ownHost bool) []string {
	if strings.Contains(token, ":") { // user:password, as Bitbucket's app passwords are
		return []string{Basic(token)}
	}
	if show := Describe(provider).Credentials; show != nil {
		return show(token, ownHost)
	}
	return []string{Basic("oauth2:" + token)}
}

// Basic returns the Authorization header for user:password.
func Basic(pair string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}
