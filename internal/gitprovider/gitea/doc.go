// Package gitea speaks to Gitea and Forgejo, which answer alike: their REST API
// below /api/v1 of any host. It knows nothing of other providers, and nothing of
// what its answers are used for.
package gitea
