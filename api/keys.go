package api

import "time"

// Key is an API key in lists. The key itself is shown once, when it is created.
type Key struct {
	ID        string     `json:"id"`
	User      string     `json:"user"`
	Name      string     `json:"name"`
	Admin     bool       `json:"admin"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Current   bool       `json:"current" doc:"Whether this request uses the key, or a login made with it. Revoking it logs you out."`
	Prefix    string     `json:"prefix" doc:"First characters of the key. The rest is stored only as a hash."`
	// LastUsedAt exists because older front ends expect it.
	LastUsedAt *time.Time `json:"last_used_at" doc:"Always null: key usage is not recorded."`
}

// CreateKey is the body of POST /api/keys.
type CreateKey struct {
	User    Opt[string] `json:"user,omitzero" minLength:"1" maxLength:"64" doc:"Owner of the key. Default: yourself. Only admins may name another user."`
	Name    Opt[string] `json:"name,omitzero" maxLength:"100" doc:"Label of the key, on one line."`
	Admin   Opt[bool]   `json:"admin,omitzero" nullable:"false" doc:"Create an admin key. Only admins may do this."`
	Expires Opt[string] `json:"expires,omitzero" maxLength:"50" doc:"Time until the key expires, such as 720h. Default: never."`
}

// NewKey is the response of POST /api/keys.
type NewKey struct {
	Key
	Secret string `json:"key" doc:"The key. It is shown only once."`
}

// Login is the body of POST /api/login: a one-time ticket from a login link, or a key.
type Login struct {
	Ticket Opt[string] `json:"ticket,omitzero" maxLength:"200"`
	Key    Opt[string] `json:"key,omitzero" maxLength:"200" format:"password"`
}

// Me is the response of POST /api/login and GET /api/me.
type Me struct {
	User  string `json:"user"`
	Admin bool   `json:"admin"`
	// DeleteAfter is the number of seconds after its last activity at which a conversation is deleted; 0 is never.
	DeleteAfter int64 `json:"delete_conversations_after,omitzero" minimum:"0" doc:"Number of seconds after its last activity at which a conversation is deleted. Omitted if conversations are kept."`
}
