package api

import "time"

// User is somebody who owns settings, conversations and keys, as an administrator sees them.
type User struct {
	Name          string    `json:"name"`
	Admin         bool      `json:"admin"`
	Disabled      bool      `json:"disabled" doc:"A disabled user is locked out; nothing of theirs is deleted."`
	CreatedAt     time.Time `json:"created_at"`
	Conversations int64     `json:"conversations" doc:"How many there are, deleted ones not counted."`
	Spent         float64   `json:"spent" doc:"US dollars in the present month (UTC)."`
	Budget        *float64  `json:"budget" doc:"What may be spent in a month; null if there is no limit."`
}

// CreateUser is the body of POST /api/users.
type CreateUser struct {
	Name  string    `json:"name" minLength:"1" maxLength:"64" doc:"1 to 64 characters of a-z, 0-9, '.', '_', '@' and '-'; the first is a letter or a digit."`
	Admin Opt[bool] `json:"admin,omitzero" nullable:"false" doc:"May have admin keys."`
}

// PatchUser is the body of PATCH /api/users/{name}.
type PatchUser struct {
	Disabled Opt[bool] `json:"disabled,omitzero" nullable:"false" doc:"true locks the user out and closes their streams; false lets them in again."`
}

// LoginOptions says how people may log in beside with a key.
type LoginOptions struct {
	OIDC *LoginOIDC `json:"oidc" doc:"Single sign-on at an identity provider; null if there is none."`
}

// LoginOIDC is where a sign-on begins.
type LoginOIDC struct {
	Name      string `json:"name" doc:"What people call the provider."`
	StartPath string `json:"start_path" doc:"Send the browser here. The query parameter next is a path of the server's where it is to be in the end."`
}
