package gitprovider

import "net/url"

// Site returns the base URL of a provider's repositories: at the stored host, or at the
// public one for "".
func Site(provider, host string) (*url.URL, error) { return baseURL(provider, host) }
