// Package native is the public format of events, format=deckhand: an event as it is
// logged, without what only concerns the server.
//
//	kinds.go     which kinds there are on the wire, and which fields stay on the server
//	encode.go    an event to JSON and back
//	imported.go  what events that were taken over from a legacy server mean here
//	schema.go    a JSON schema for each kind, from the Go types of the payloads
//	shape.go     which fields programs go by, and so are never masked
//
// It does not know who reads it, nor who owns an event: masking is the business of the caller.
package native
