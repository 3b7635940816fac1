// Package gitprovider is the port for git providers: validation of names, access checks,
// and the vocabulary of each provider for prompts.
package gitprovider
