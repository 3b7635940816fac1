package api

import "time"

// Key is an API key as lists show it; the key itself is shown once, when it is made.
type Key struct {
	ID        string     `json:"id"`
	User      string     `json:"user"`
	Name      string     `json:"name"`
	Admin     bool       `json:"admin"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Current   bool       `json:"current" doc:"Whether you came with it, or by a login that was made with it: revoking it locks you out."`
	Prefix    string     `json:"prefix" doc:"How the key begins. Nothing else of it is kept."`
	// LastUsedAt is here because older front ends look for it.
	LastUsedAt *time.Time `json:"last_used_at" doc:"Always null: the use of keys is not recorded."`
}

// CreateKey is the body of POST /api/keys.
type CreateKey struct {
	User    Opt[string] `json:"user,omitzero" minLength:"1" maxLength:"64" doc:"Whose key; only admins may name somebody else. Default: yourself."`
	Name    Opt[string] `json:"name,omitzero" maxLength:"100" doc:"A label, on one line."`
	Admin   Opt[bool]   `json:"admin,omitzero" nullable:"false" doc:"Only admins may make admin keys."`
	Expires Opt[string] `json:"expires,omitzero" maxLength:"50" doc:"How long the key is good, e.g. 720h. Default: for ever."`
}

// NewKey answers POST /api/keys.
type NewKey struct {
	Key
	Secret string `json:"key" doc:"The key. It is shown this once."`
}

// Login is the body of POST /api/login: a one-time ticket from a login link, or a key.
type Login struct {
	Ticket Opt[string] `json:"ticket,omitzero" maxLength:"200"`
	Key    Opt[string] `json:"key,omitzero" maxLength:"200" format:"password"`
}

// Me answers a login and GET /api/me.
type Me struct {
	User  string `json:"user"`
	Admin bool   `json:"admin"`
}
