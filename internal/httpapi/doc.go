// Package httpapi is the door: it checks the key, decodes and validates what
// comes in, turns the wire's conversations into the core's sessions, and turns
// errors into statuses.
//
// All routes stand in one table (routes.go). A route's Go types make its part
// of the OpenAPI document, and the same document validates its requests, so
// that what is promised and what is enforced cannot drift apart.
package httpapi
