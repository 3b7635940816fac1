package gitea

import (
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// terms are the terms of Gitea and Forgejo.
var terms = gitprovider.Terms{Request: "pull request", Short: "PR", Checks: "Actions", Mark: "#", Ref: "pull/%d/head"}

// Adapter registers Gitea in package forge.
var Adapter = call.Adapter{New: New, Descriptor: gitprovider.Descriptor{
	Name: "gitea", Title: "Gitea", Host: hosts["gitea"],
	Terms:   terms,
	Tool:    "create_gitea_pr",
	Webhook: &gitprovider.Webhook{Events: []string{"X-Gitea-Event"}, IDs: []string{"X-Gitea-Delivery"}, Signed: gitprovider.HubSigned("X-Gitea-Signature", "X-Hub-Signature-256"), Read: gitprovider.ReadHub},
	Probe:   &gitprovider.Probe{Order: 2, Path: "/api/v1/version", Fields: []string{"version"}},
}}

// Forgejo has the same API as Gitea.
var Forgejo = call.Adapter{New: New, Descriptor: gitprovider.Descriptor{
	Name: "forgejo", Title: "Forgejo", Host: hosts["forgejo"],
	Terms: terms,
	Tool:  "create_gitea_pr",
	Webhook: &gitprovider.Webhook{Events: []string{"X-Forgejo-Event", "X-Gitea-Event"}, IDs: []string{"X-Forgejo-Delivery", "X-Gitea-Delivery"},
		Signed: gitprovider.HubSigned("X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256"), Read: gitprovider.ReadHub},
}}
