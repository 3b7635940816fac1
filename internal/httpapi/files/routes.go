package files

import (
	"log/slog"

	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/review"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Routes are those on the workspaces of conversations.
func (d *Handlers) Routes() []rest.Route {
	return append(d.reviewRoutes(), []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/list-files", ID: "listFiles", Tag: rest.TagWorkspace, Summary: "List a workspace folder", About: aboutListFiles, May: rest.WorkspaceErrors}, d.listFiles),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/mentions", ID: "listMentions", Tag: rest.TagWorkspace, Summary: "Search files, folders and symbols by name", About: aboutMentions, May: rest.WorkspaceErrors}, d.listMentions),
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/select-file", ID: "selectFile", Stream: true, Tag: rest.TagWorkspace, Summary: "Read a workspace file", About: aboutSelectFile, May: append(rest.SizeErrors, rest.WorkspaceErrors...)}, describeFile, d.selectFile),
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/file", ID: "getFile", Stream: true, Tag: rest.TagWorkspace, Summary: "Download a workspace file", About: aboutGetFile, May: rest.WorkspaceErrors}, describeBytes, d.getFile),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/file", ID: "saveFile", Stream: true, Tag: rest.TagWorkspace, Summary: "Write a workspace file", About: aboutSaveFile, May: append(rest.SizeErrors, rest.SandboxErrors...)}, d.saveFile),
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/zip-directory", ID: "zipDirectory", Stream: true, Tag: rest.TagWorkspace, Summary: "Download the workspace as workspace.zip", About: aboutZip, May: rest.WorkspaceErrors}, describeZip, d.zipDirectory),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/git/changes", ID: "gitChanges", Tag: rest.TagWorkspace, Summary: "List changed files", About: aboutChanges, May: rest.WorkspaceErrors}, d.gitChanges),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/git/diff", ID: "gitDiff", Tag: rest.TagWorkspace, Summary: "Get the old and new content of a changed file", About: aboutDiff, May: append(rest.SizeErrors, rest.WorkspaceErrors...)}, d.gitDiff),
		rest.RawOp(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/upload-files", ID: "uploadFiles", Stream: true, Upload: true, Tag: rest.TagWorkspace, Summary: "Upload files to the workspace", About: aboutUpload, May: append(rest.SizeErrors, rest.SandboxErrors...)}, describeUpload, d.uploadFiles),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/ports", ID: "listPorts", Tag: rest.TagWorkspace, Summary: "List the TCP ports that are open in the sandbox", About: "The list is empty while the sandbox is not running.", May: rest.SandboxErrors}, d.listPorts),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/config", ID: "getRuntimeConfig", Tag: rest.TagWorkspace, Summary: "Get the sandbox of a conversation", May: rest.SandboxErrors[:1]}, d.getRuntimeConfig),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/egress", ID: "getEgress", Tag: rest.TagWorkspace, Summary: "Get the network policy and requests of a sandbox", About: aboutEgress, May: rest.SandboxErrors[:1]}, d.getEgress),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/egress", ID: "setEgress", Tag: rest.TagWorkspace, Summary: "Set the network policy of a sandbox", About: aboutEgress, May: rest.SandboxErrors[:1]}, d.setEgress),
	}...)
}

// Config is what the routes need of the sandboxes.
type Config struct {
	// Workspaces keeps the sandboxes; nil if there are none.
	Workspaces *workspace.Keeper
	// Egress is the way out of the sandboxes, nil if there is none, and
	// ServerPolicy the policy that holds for all of them.
	Egress       *egress.Proxy
	ServerPolicy egress.Policy
	// Reviews are the use cases of reviewing and landing changes.
	Reviews *review.Service
}

// Handlers shows and changes what is in workspaces.
type Handlers struct {
	Config
	Conversations *usecase.Service
	Sessions      *session.Sessions
	Retries       *rest.Retries
	Life          rest.Lifetime
	Logger        *slog.Logger

	arriving arriving
}
