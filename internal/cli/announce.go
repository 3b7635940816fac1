package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"deckhand/internal/access"
)

// Start is a server that has been started.
type Start struct {
	Gate    *access.Gate
	DataDir string
	// ReadOnly says that no key can be made.
	ReadOnly bool
	Version  string
	// Base is where people find the server.
	Base string
}

// Announce makes the first key when there is none, and prints where to go.
func (s Start) Announce(ctx context.Context, w io.Writer) error {
	keyPath, made, base := "", false, s.Base
	if !s.ReadOnly {
		var err error
		if keyPath, made, err = s.Gate.Bootstrap(ctx, s.DataDir); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "Deckhand %s is at %s\n", s.Version, base)
	if keyPath == "" {
		fmt.Fprintf(w, "  log in:    %s/login with a key; create one with: deckhand key create --user NAME --data-dir %s\n", base, s.DataDir)
		return nil
	}
	if made {
		fmt.Fprintf(w, "  first start: created user admin and a key\n")
	}
	fmt.Fprintf(w, "  admin key: %s\n", keyPath)
	plain, err := access.ReadKeyFile(keyPath)
	if err != nil {
		return err
	}
	who, err := s.Gate.Authenticate(ctx, plain)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  log in:    %s/login#%s  (works once, within an hour)\n", base, s.Gate.NewTicket(who, time.Hour))
	return nil
}
