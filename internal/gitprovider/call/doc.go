// Package call is the HTTP client of all git provider adapters: JSON requests with
// uniform errors. It does not know any provider's API. Credentials are sent only to the
// host they were stored for, and are never part of an error.
package call
