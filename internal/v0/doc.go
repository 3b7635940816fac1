// Package v0 translates to and from the legacy format: our events into the JSON events
// that existing clients know, and the messages of such clients into intents.
//
// It consists of pure functions. It knows neither where events come from (live and
// httpapi) nor what an intent does (session).
package v0
