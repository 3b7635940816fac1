package github

import (
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Adapter registers the provider in package forge.
var Adapter = call.Adapter{New: New, Descriptor: gitprovider.Descriptor{
	Name: "github", Title: "GitHub", Host: Host, Founding: true, Public: true,
	Terms: gitprovider.Terms{Request: "pull request", Short: "PR", Checks: "GitHub Actions", Mark: "#", Ref: "pull/%d/head"},
	Tool:  "create_pr",
	Credentials: func(token string, _ bool) []string {
		return []string{gitprovider.Basic("x-access-token:" + token)}
	},
	Webhook: &gitprovider.Webhook{Events: []string{"X-Github-Event"}, IDs: []string{"X-Github-Delivery"}, Signed: gitprovider.HubSigned("X-Hub-Signature-256"), Read: gitprovider.ReadHub},
	Probe:   &gitprovider.Probe{Order: 3, Path: "/api/v3/meta", Fields: []string{"verifiable_password_authentication"}, Header: "X-Github-Request-Id"},
}}
