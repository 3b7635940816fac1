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
		return []string{basic(token)}
	}
	bearer := "Bearer " + token
	switch {
	case provider == "github":
		return []string{basic("x-access-token:" + token)}
	case provider == "bitbucket" && ownHost:
		return []string{bearer, basic("x-token-auth:" + token)}
	case provider == "bitbucket":
		return []string{basic("x-token-auth:" + token), basic("x-bitbucket-api-token-auth:" + token)}
	case provider == "enterprise_sso":
		return []string{bearer, basic("oauth2:" + token)}
	}
	return []string{basic("oauth2:" + token)}
}

func basic(pair string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}
