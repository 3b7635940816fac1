// Package v0 speaks the legacy dialect: it turns our events into the JSON events that
// existing clients know, and what such clients may send into what a person can want.
//
// It consists of pure functions. It does not know where events come from (live and
// httpapi do), nor what an intent leads to (session does).
package v0
