package gitlab

import (
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Adapter registers the provider in package forge.
var Adapter = call.Adapter{New: New, Descriptor: gitprovider.Descriptor{
	Name: "gitlab", Title: "GitLab", Host: standard, Founding: true, Public: true, OrgRepository: "openhands-config",
	Terms:   gitprovider.Terms{Request: "merge request", Short: "MR", Checks: "CI pipelines", Mark: "!", Ref: "merge-requests/%d/head"},
	Tool:    "create_mr",
	Webhook: &gitprovider.Webhook{Events: []string{"X-Gitlab-Event"}, IDs: []string{"Idempotency-Key", "Webhook-Id", "X-Gitlab-Event-Uuid"}, Signed: hookSigned, Read: readHook},
	Probe:   &gitprovider.Probe{Order: 1, Path: "/api/v4/version", Fields: []string{"version", "revision"}, Header: "X-Gitlab-Meta"},
}}
