package api

import "time"

// FileContent answers GET …/select-file.
type FileContent struct {
	Code string `json:"code" doc:"Text of the file; for images, PDFs and videos a data: URL."`
	ETag string `json:"etag" doc:"Version of the content. Send it when you save the file."`
	// Unfit is only there if it was asked for.
	Unfit *Unfit `json:"unfit,omitempty" doc:"Reason why there is no content. Only with unfit=told."`
}

// Unfit says why a file cannot be shown: the error that would have been the answer.
type Unfit struct {
	Status  int    `json:"status" doc:"HTTP status of the error: 403, 404, 413, 415 or 422."`
	Message string `json:"message"`
}

// SaveFile is the body of PUT …/file.
type SaveFile struct {
	Path    string      `json:"path" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	Content string      `json:"content" doc:"Complete text of the file."`
	ETag    Opt[string] `json:"etag,omitzero" minLength:"64" maxLength:"64" pattern:"^[0-9a-f]+$" doc:"The etag of the content to replace; null to create a new file."`
}

// SavedFile answers PUT …/file.
type SavedFile struct {
	ETag string `json:"etag" doc:"The etag of the saved file."`
}

// GitChange is a file that differs from where the work began.
type GitChange struct {
	Status string `json:"status" enum:"M,A,D,U" doc:"M modified, A added, D deleted, U unmerged. A renamed file is listed as D and A."`
	Path   string `json:"path" doc:"Path relative to the workspace, escaped as in list-files."`
}

// GitDiff is a file before and now.
type GitDiff struct {
	Modified *string `json:"modified" doc:"Current content; null if the file does not exist."`
	Original *string `json:"original" doc:"Content in the base version; null if the file did not exist."`
	// Unfit is only there if it was asked for.
	Unfit *Unfit `json:"unfit,omitempty" doc:"Reason why there are no contents. Only with unfit=told."`
}

// Uploaded answers POST …/upload-files.
type Uploaded struct {
	UploadedFiles []string      `json:"uploaded_files" doc:"Paths of the stored files inside the sandbox, in the order of the request."`
	FileURLs      []string      `json:"file_urls" doc:"Same as uploaded_files, for legacy clients."`
	SkippedFiles  []SkippedFile `json:"skipped_files" doc:"Files that were not stored, with the reason."`
}

// SkippedFile is a file that was not stored.
type SkippedFile struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Port is a TCP port that something in the sandbox listens on.
type Port struct {
	Port int `json:"port"`
}

// WebHosts answers GET …/web-hosts.
type WebHosts struct {
	Hosts map[string]int `json:"hosts" doc:"URLs for a browser, each with the port in the sandbox."`
	Hint  string         `json:"hint,omitempty" doc:"Reason why ports cannot be served. Omitted if they can."`
}

// RuntimeConfig answers GET …/config.
type RuntimeConfig struct {
	RuntimeID *string `json:"runtime_id" doc:"ID of the sandbox; null before the sandbox is created."`
	SessionID string  `json:"session_id"`
}

// TerminalControl is what a client of the terminal says in a text frame.
type TerminalControl struct {
	Resize *TerminalSize `json:"resize,omitempty"`
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// EgressPolicy limits the hosts that a sandbox may reach.
type EgressPolicy struct {
	Mode  string   `json:"mode" enum:"open,allowlist,off" doc:"open: all public addresses; allowlist: only the hosts in allow; off: none."`
	Allow []string `json:"allow" doc:"Hosts for the mode allowlist: example.org, *.example.org (subdomains), .example.org (both), an IP address or a range such as 192.0.2.0/24, each with an optional :port. Default ports: 80 and 443."`
}

// SetEgress is the body of PUT …/egress.
type SetEgress struct {
	Mode  string        `json:"mode" enum:"open,allowlist,off"`
	Allow Opt[[]string] `json:"allow,omitzero" maxItems:"1000"`
}

// Egress answers GET and PUT …/egress.
type Egress struct {
	Policy    EgressPolicy    `json:"policy" doc:"Policy of this conversation."`
	Effective EgressPolicy    `json:"effective" doc:"Effective policy: the stricter of the conversation's and the server's policy."`
	Requests  []EgressRequest `json:"requests" doc:"Network requests from the sandbox, newest first."`
	Next      *int64          `json:"next" doc:"Cursor of the next page: send it as before. null on the last page."`
}

// EgressRequest is one request or tunnel that something in the sandbox asked for.
type EgressRequest struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	TookMS   int64     `json:"took_ms"`
	Call     string    `json:"call" doc:"Tool call that was running; empty if unknown."`
	Method   string    `json:"method" doc:"HTTP method; CONNECT for a tunnel."`
	Host     string    `json:"host"`
	Port     int       `json:"port"`
	Sent     int64     `json:"sent" doc:"Bytes sent by the sandbox."`
	Received int64     `json:"received" doc:"Bytes received by the sandbox."`
	Verdict  string    `json:"verdict"`
	Reason   string    `json:"reason" doc:"Reason why the request was refused or failed."`
}
