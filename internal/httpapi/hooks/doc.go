// Package hooks manages the webhooks that the server sends, and the integrations by which
// git providers start conversations.
package hooks
