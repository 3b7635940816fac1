// Package workspace keeps each conversation's sandbox: it starts it when it is
// needed, attaches to it again after a restart of ours, says in the log what
// became of it, ends it when the conversation is stopped, and removes it when
// the conversation is deleted. The agent's tools and the API's looks into a
// workspace go through one Keeper, so that there is never more than one sandbox
// for a conversation.
//
// A workspace whose sandbox does not run is read without starting it.
package workspace
