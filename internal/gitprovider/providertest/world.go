// Package providertest is the conformance suite of gitprovider.Provider. An
// adapter brings a fake server that answers in the shapes of the provider's own
// API, and says what that server knows; the suite makes every call over real
// HTTP, first against the fake and then against a host that misbehaves.
package providertest

import (
	"net/http"
	"testing"

	"deckhand/internal/gitprovider"
)

// Token is the one the suite asks with. The fake need not look at it: the suite
// sees to it that every request carries it in some header.
const Token = "ada:conformance-token-4711"

// Options describe an adapter to the suite.
type Options struct {
	// New makes the adapter for a host that is given as http://127.0.0.1:port.
	New func(client *http.Client, host, token string) gitprovider.Provider
	// Serve makes the fake. It must page by what it is asked for.
	Serve func(t *testing.T) http.Handler
	// World is what the fake knows.
	World World
	// Denial is the body with which the provider says no to a proposal (status
	// 422), and Says the words of it that the user must see.
	Denial, Says string
	// Tolerates lists, by the name of a call, the failures that the adapter rightly
	// turns into an empty answer: "Tasks": {"404"} where an issue tracker may be off.
	Tolerates map[string][]string
}

// World is what a fake knows: what each call must answer.
type World struct {
	User gitprovider.User
	// Repositories are at least three, in the order of listing; they are asked for on three pages.
	Repositories []gitprovider.Repository
	// Text finds the repositories named in Found.
	Text  string
	Found []string
	// Repository is a single one. Page is the path of its page, "/"+Name if empty.
	Repository gitprovider.Repository
	Page       string
	// Branches of Repository are at least three, in the order of listing; Part is found in those named in With.
	Branches []gitprovider.Branch
	Part     string
	With     []string
	// Installations is nil if the provider has none.
	Installations []string
	Tasks         []gitprovider.Task
	// Folder of Repository holds Files; File holds Content. Both at Ref.
	Ref, Folder   string
	Files         []gitprovider.File
	File, Content string
	// Proposal becomes Proposed.
	Proposal gitprovider.Proposal
	Proposed gitprovider.Request
	// Request is one that is there already, Discussion the same as an issue.
	Request    gitprovider.Request
	Discussion gitprovider.Issue
	Issue      gitprovider.Issue
}

// Missing is a repository that no fake has.
const Missing = "nobody/nothing"
