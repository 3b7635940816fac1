// Package call is what all adapters of git providers share: one call over HTTP
// with JSON both ways, and one reading of what can go wrong with it. It knows no
// provider's API. Credentials go to the host they were stored for and to no
// other, and never into an error.
package call
