// Package gitaccess decides what a conversation may do with git: which tokens
// its sandbox may use through the gate, how its repository gets into the
// workspace, whether that repository is trusted, and which forge opens its pull
// requests. It puts gitgate, checkout and gitprovider together with the settings
// of users.
package gitaccess
