// Package git asks git providers for users, with the tokens that they stored: repositories,
// branches, microagents and tasks.
package git
