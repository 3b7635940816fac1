// Package takeover moves what a legacy server has stored into Deckhand: a user's
// settings and secrets, and conversations with all their events.
//
// It only reads the folder. A conversation is stored as a whole or not at all, under
// the id it had, so that it can be run again at any time: what is there is left alone.
package takeover

import (
	"context"
	"fmt"
	"os"
	"time"

	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Store keeps conversations.
type Store interface {
	// AppendAll stores the batches of a new session in one transaction, or fails with
	// session.ErrConflict if the session exists.
	AppendAll(ctx context.Context, batches []session.Batch) error
	// Row is session.Index's.
	Row(ctx context.Context, id session.ID) (session.Row, error)
}

// Import is one run.
type Import struct {
	// Root is the legacy server's folder. Nothing outside of it is read.
	Root *os.Root
	// User is who gets everything.
	User     string
	Store    Store
	Settings *settings.Service
	// Masker learns every secret that is found, and masks them in events.
	Masker *secret.Masker

	// LegacyUser restricts the run to what belonged to this user of a server with
	// several; "" is everything.
	LegacyUser string
	// Zone is that of timestamps which do not say.
	Zone *time.Location
	// Overwrite replaces settings that the user has stored here.
	Overwrite bool
	// DryRun stores nothing and reports what would be.
	DryRun bool
	// Told hears of each conversation when it is done, Reading how far a long one is.
	Told    func(Conversation)
	Reading func(id string, done, total int)
	// Now is the clock: time.Now if it is nil.
	Now func() time.Time
}

// Run imports all it can. The error is of what makes going on senseless: a folder
// that is none of a legacy server's, a database that cannot be written. Everything
// else is in the report.
func (m *Import) Run(ctx context.Context) (Report, error) {
	if m.Now == nil {
		m.Now = time.Now
	}
	if m.Zone == nil {
		m.Zone = time.Local
	}
	f := &folder{root: m.Root}
	report := Report{DryRun: m.DryRun, Conversations: []Conversation{}}
	places, problems := f.conversations(m.LegacyUser)
	report.Problems = problems
	prefs, err := m.settings(ctx, f)
	if err != nil {
		return report, err
	}
	report.Settings = prefs
	if len(places) == 0 && len(problems) == 0 && !prefs.Found {
		return report, fmt.Errorf("no legacy server data found: settings.json, secrets.json and sessions are missing")
	}
	taken := map[session.ID]bool{}
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("interrupted after %d of %d conversations; run the import again to continue: %w", len(report.Conversations), len(places), err)
		}
		c, err := m.conversation(ctx, f, p, taken)
		if err != nil {
			return report, fmt.Errorf("%s: %w", p.path, err)
		}
		report.Conversations = append(report.Conversations, c)
		if m.Told != nil {
			m.Told(c)
		}
	}
	return report, nil
}
