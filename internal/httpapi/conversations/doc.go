// Package conversations serves conversations: creating, listing and changing them, their
// messages, approvals and settings of their own, and their events as pages and streams.
// The rules are those of the use cases.
package conversations
