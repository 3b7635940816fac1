package gitprovider

import "net/url"

// Site is where a provider's repositories are for the world: at the stored host,
// or at the provider's own if that is "".
func Site(provider, host string) (*url.URL, error) { return baseURL(provider, host) }
