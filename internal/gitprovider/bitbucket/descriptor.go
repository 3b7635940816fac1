package bitbucket

import (
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Adapter registers the provider in package forge.
var Adapter = call.Adapter{New: New, Descriptor: gitprovider.Descriptor{
	Name: "bitbucket", Title: "Bitbucket", Host: cloudHost, Founding: true, Public: true,
	Terms:       gitprovider.Terms{Request: "pull request", Short: "PR", Checks: "Bitbucket Pipelines", Mark: "#"},
	Tool:        "create_bitbucket_pr",
	ClonePath:   "scm", // of data centers
	UsersByID:   true,
	Credentials: credentials,
	// X-Hook-UUID identifies the hook, not the delivery.
	Webhook: &gitprovider.Webhook{Events: []string{"X-Event-Key"}, IDs: []string{"X-Request-Uuid", "X-Request-Id"}, Signed: gitprovider.HubSigned("X-Hub-Signature"), Read: readHook},
	Probe:   &gitprovider.Probe{Order: 4, Path: "/rest/api/1.0/application-properties", Fields: []string{"version", "buildNumber", "displayName"}, Header: "X-Arequestid"},
}}

func credentials(token string, ownHost bool) []string {
	first := gitprovider.Basic("x-token-auth:" + token)
	if ownHost {
		return []string{"Bearer " + token, first}
	}
	return []string{first, gitprovider.Basic("x-bitbucket-api-token-auth:" + token)}
}
