// Package trigger lets people start and continue conversations from where they
// talk about their code: an issue with a label, or a comment that mentions the
// bot, at GitHub, GitLab, Bitbucket, Gitea or Forgejo.
//
// An Integration belongs to a user and has a secret. The Receiver checks what a
// provider sends against the secrets, which tells whose it is, and records what
// is to be done before it answers. The Worker does it: it starts a conversation
// with the user's settings, or says something in the one that the issue has
// already, and when the agent is done it posts the answer below the issue.
// What was recorded is done after a restart too, and once: the conversation's
// id and the message's key follow from the delivery.
//
// Integrations is what the door uses to manage them and to show what came in.
// The package knows neither the door nor a database.
package trigger
