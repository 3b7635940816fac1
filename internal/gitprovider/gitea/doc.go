// Package gitea is the adapter for Gitea and Forgejo, which have the same REST API below
// /api/v1.
package gitea
