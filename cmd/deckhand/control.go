package main

import (
	"context"
	"path/filepath"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/control"
)

// control handles requests of commands that run beside the server.
func (s *server) control(ctx context.Context, what, argument string) string {
	switch what {
	case control.Keys:
		if s.data.gate.Refresh(ctx) != nil {
			return "failed"
		}
		return control.OK
	case control.Settings:
		s.settings.Forget(argument)
		return control.OK
	case control.Reload:
		return s.reloader.Answer()
	case control.LogLevel:
		return s.reloader.SetLevel(argument)
	case control.Database:
		return s.data.where.Described()
	case control.Address:
		return s.local + " " + s.public
	case control.Ticket:
		return s.invite(ctx)
	}
	return "unknown"
}

// inviteTime is how long a link of deckhand open is valid.
const inviteTime = 5 * time.Minute

// invite returns a login ticket for a caller who can read the first key, or "" if there
// is none.
func (s *server) invite(ctx context.Context) string {
	plain, err := access.ReadKeyFile(filepath.Join(s.api.Server.DataDir, "admin.key"))
	if err != nil {
		return ""
	}
	who, err := s.data.gate.Authenticate(ctx, plain)
	if err != nil {
		return ""
	}
	return s.data.gate.NewTicket(who, inviteTime)
}
