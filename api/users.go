package api

import "time"

// User is an owner of settings, conversations and keys, as seen by an administrator.
type User struct {
	Name          string    `json:"name"`
	Admin         bool      `json:"admin"`
	Disabled      bool      `json:"disabled" doc:"A disabled user cannot log in or use keys. Their data is kept."`
	CreatedAt     time.Time `json:"created_at"`
	Conversations int64     `json:"conversations" doc:"Number of conversations, without deleted ones."`
	Spent         float64   `json:"spent" doc:"US dollars spent in the current month (UTC)."`
	Budget        *float64  `json:"budget" doc:"Monthly spending limit in US dollars; null if there is none."`
}

// CreateUser is the body of POST /api/users.
type CreateUser struct {
	Name  string    `json:"name" minLength:"1" maxLength:"64" doc:"1 to 64 characters: a-z, 0-9, '.', '_', '@' and '-', starting with a letter or digit."`
	Admin Opt[bool] `json:"admin,omitzero" nullable:"false" doc:"Whether the user may have admin keys."`
}

// PatchUser is the body of PATCH /api/users/{name}.
type PatchUser struct {
	Disabled Opt[bool] `json:"disabled,omitzero" nullable:"false" doc:"true disables the user and closes their streams; false enables the user again."`
	// VerifiedEmail contains the address, so that an address that the user changes in the
	// meantime is not confirmed.
	VerifiedEmail Opt[string] `json:"verified_email,omitzero" nullable:"false" maxLength:"254" doc:"The user's e-mail address, to confirm that it is theirs: email_verified in their settings becomes true until they change the address. Empty withdraws the confirmation. Only on servers with single sign-on or e-mail."`
}

// LoginOptions are the ways to log in besides a key.
type LoginOptions struct {
	OIDC *LoginOIDC `json:"oidc" doc:"Single sign-on with an identity provider; null if it is not configured."`
}

// LoginOIDC is where single sign-on starts.
type LoginOIDC struct {
	Name      string `json:"name" doc:"Display name of the provider."`
	StartPath string `json:"start_path" doc:"Path that starts the login in a browser. The query parameter next is the path on this server to open after the login."`
}
