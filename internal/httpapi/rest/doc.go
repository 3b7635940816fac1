// Package rest is what every HTTP route has in common: it makes the two halves of a
// route, the handler and its part of the OpenAPI document, from one set of Go types;
// reads and validates requests, within bounds of memory and time; finds out who asks;
// and writes answers and errors. It knows nothing of conversations.
package rest
