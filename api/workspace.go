package api

import "time"

// FileContent answers GET …/select-file.
type FileContent struct {
	Code string `json:"code" doc:"The text of the file; for images, PDF and video a data: address."`
	ETag string `json:"etag" doc:"Tells this content from another; send it along to save the file."`
	// Unfit is only there if it was asked for.
	Unfit *Unfit `json:"unfit,omitempty" doc:"Why there is no content, if unfit=told."`
}

// Unfit says why a file cannot be shown: the error that would have been the answer.
type Unfit struct {
	Status  int    `json:"status" doc:"The status of that error: 403, 404, 413, 415 or 422."`
	Message string `json:"message"`
}

// SaveFile is the body of PUT …/file.
type SaveFile struct {
	Path    string      `json:"path" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	Content string      `json:"content" doc:"All of its text."`
	ETag    Opt[string] `json:"etag,omitzero" minLength:"64" maxLength:"64" pattern:"^[0-9a-f]+$" doc:"The etag of the content that is replaced; null for a file that is not there yet."`
}

// SavedFile answers PUT …/file.
type SavedFile struct {
	ETag string `json:"etag" doc:"That of the file now."`
}

// GitChange is a file that differs from where the work began.
type GitChange struct {
	Status string `json:"status" enum:"M,A,D,U" doc:"M modified, A added, D deleted, U in conflict. A file that was renamed is a D and an A."`
	Path   string `json:"path" doc:"Relative to the workspace, spelled as in list-files."`
}

// GitDiff is a file before and now.
type GitDiff struct {
	Modified *string `json:"modified" doc:"The file now; null if there is none."`
	Original *string `json:"original" doc:"The file where the work began; null if there was none."`
	// Unfit is only there if it was asked for.
	Unfit *Unfit `json:"unfit,omitempty" doc:"Why there are no contents, if unfit=told."`
}

// Uploaded answers POST …/upload-files.
type Uploaded struct {
	UploadedFiles []string      `json:"uploaded_files" doc:"Where the files are, as paths inside the sandbox, in the order they were sent."`
	FileURLs      []string      `json:"file_urls" doc:"The same, under the name that older documents have for it."`
	SkippedFiles  []SkippedFile `json:"skipped_files" doc:"Files that were not stored, and why."`
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
	Hosts map[string]int `json:"hosts" doc:"Addresses for a browser, each with the port in the sandbox that it leads to."`
	Hint  string         `json:"hint,omitempty" doc:"Why no port can be served, if that is so."`
}

// RuntimeConfig answers GET …/config.
type RuntimeConfig struct {
	RuntimeID *string `json:"runtime_id" doc:"The sandbox; null before there is one."`
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

// EgressPolicy says whom a sandbox may talk to.
type EgressPolicy struct {
	Mode  string   `json:"mode" enum:"open,allowlist,off" doc:"open: every public address; allowlist: what allow names; off: nothing."`
	Allow []string `json:"allow" doc:"Hosts for the mode allowlist: example.org, *.example.org (those below it), .example.org (both), an address or a range such as 192.0.2.0/24, each with an optional :port. Without one it means the ports 80 and 443."`
}

// SetEgress is the body of PUT …/egress.
type SetEgress struct {
	Mode  string        `json:"mode" enum:"open,allowlist,off"`
	Allow Opt[[]string] `json:"allow,omitzero" maxItems:"1000"`
}

// Egress answers GET and PUT …/egress.
type Egress struct {
	Policy    EgressPolicy    `json:"policy" doc:"What this conversation asked for."`
	Effective EgressPolicy    `json:"effective" doc:"What holds: the conversation's policy and the server's, whichever is stricter."`
	Requests  []EgressRequest `json:"requests" doc:"What the sandbox asked for, newest first."`
	Next      *int64          `json:"next" doc:"Send it as before for older requests; null at the end."`
}

// EgressRequest is one request or tunnel that something in the sandbox asked for.
type EgressRequest struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	TookMS   int64     `json:"took_ms"`
	Call     string    `json:"call" doc:"The tool call that ran meanwhile; empty if nobody knows."`
	Method   string    `json:"method" doc:"CONNECT for a tunnel."`
	Host     string    `json:"host"`
	Port     int       `json:"port"`
	Sent     int64     `json:"sent" doc:"Bytes that left the sandbox."`
	Received int64     `json:"received" doc:"Bytes that came back."`
	Verdict  string    `json:"verdict"`
	Reason   string    `json:"reason" doc:"Why it was refused or failed."`
}
