// Package httpapi serves the HTTP API: it checks the key, decodes and validates what
// comes in, and turns errors into statuses. The folders below have the routes,
// by subject; routes.go puts them together in one table.
//
// A route's Go types make its part of the OpenAPI document, and the same document
// validates its requests, so that what is promised and what is enforced cannot
// drift apart.
package httpapi
