// Package gitprovider knows the places where repositories live: which names
// are safe to pass on, whether a repository can be reached, and how each place
// calls its things when the agent is told what to do there.
package gitprovider
