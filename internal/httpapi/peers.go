package httpapi

import (
	"context"
	"net/http"
	"strings"

	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/rest"
)

// anywhere are the routes of a conversation that need its log and not its workspace, by their IDs: every server answers
// them. All others are answered where the workspace is.
var anywhere = map[string]bool{
	"getConversation": true, "patchConversation": true, "startConversation": true, "stopConversation": true,
	"getOverrides": true, "setOverrides": true, "getTrust": true, "setTrust": true,
	"listEvents": true, "postEvent": true, "postMessage": true, "streamEvents": true, "socketEvents": true, "getTimeline": true, "getTrajectory": true,
	"getApprovals": true, "postApproval": true, "getQueue": true, "changeQueuedMessage": true, "deleteQueuedMessage": true,
	"compactConversation": true, "rememberPrompt": true, "submitFeedback": true, "listRatings": true, "getRating": true, "getVSCodeURL": true, "setExperiment": true,
}

// atHome reports whether a route is answered where the workspace of its conversation is.
func atHome(r *rest.Route) bool {
	return strings.Contains(r.Path, "{conversation_id}") && !r.Public && !anywhere[r.ID]
}

// elsewhere forwards a request that another server must answer, and reports whether it did.
func (d *Handler) elsewhere(w http.ResponseWriter, req *http.Request, r *rest.Route, user string) (bool, error) {
	if d.Server.Peers == nil {
		return false, nil
	}
	if atHome(r) {
		return d.Server.Peers.Conversation(w, req, req.PathValue("conversation_id"))
	}
	if r.ID == "importConversation" { // it creates a workspace
		return d.Server.Peers.Worker(w, req, user)
	}
	sid := ""
	if strings.HasPrefix(r.Path, "/socket.io") {
		sid = req.URL.Query().Get("sid")
	}
	return sid != "" && d.Server.Peers.Socket(w, req, sid), nil
}

// HasPort reports whether a port of a sandbox here has this name.
func (d *Handler) HasPort(ctx context.Context, label string, port int) bool {
	return d.ports.Has(ctx, label, port)
}

// Lists are the lists of conversations that are followed.
func (d *Handler) Lists() *conversations.Lists { return d.conversations.Lists() }
