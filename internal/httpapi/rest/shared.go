package rest

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/conversation/query"
)

// InConversation names a conversation in a path.
type InConversation = query.Conversation

// The errors of their own that routes on a workspace have: those that look into
// it without starting anything, and those that use its sandbox.
var (
	SandboxErrors   = []int{http.StatusNotFound, http.StatusServiceUnavailable}
	WorkspaceErrors = []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}
	SizeErrors      = []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
)

// DescribePage documents a route that answers with a page or file of this type.
func DescribePage(contentType string) func(o *huma.Operation) {
	return func(o *huma.Operation) {
		o.Responses["200"] = &huma.Response{Description: "Success", Content: map[string]*huma.MediaType{contentType: {}}}
	}
}

// Upgrades reports whether a request asks for a WebSocket.
func Upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// UpgradeRequired refuses a request that does not ask for a WebSocket.
func UpgradeRequired(msg string) error {
	f := Fail(http.StatusUpgradeRequired, api.CodeBadRequest, msg)
	f.Header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
	return f
}

// WantsPage is true for a browser that shows what it gets to a person.
func WantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// RootOf is the way from a page back to the root. All links are relative, because
// a proxy may have put a path before ours that we do not know.
func RootOf(r *http.Request) string {
	if n := strings.Count(r.URL.EscapedPath(), "/"); n > 1 {
		return strings.Repeat("../", n-1)
	}
	return "./"
}

// KeyForm matches keys, to recognize a key sent in place of its ID.
var KeyForm = regexp.MustCompile(`dh_[A-Za-z0-9_-]{43}|dhp_[A-Za-z0-9_.-]{43,}`)

// LocalDomain is the domain of a server that only this machine reaches.
const LocalDomain = "localhost"

// OnThisMachine reports whether a Host header means the machine of who sent it.
func OnThisMachine(host string) bool {
	host = CanonicalHost(host)
	addr, err := netip.ParseAddr(host)
	return host == LocalDomain || err == nil && addr.Unmap().IsLoopback()
}
