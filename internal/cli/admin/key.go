package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/secret"
)

// Key is deckhand key.
type Key struct {
	Create       keyCreate    `cmd:"" help:"Create a key and print only the key. Creates the user if needed."`
	List         keyList      `cmd:"" help:"List keys. The secret values are not stored and cannot be shown."`
	Revoke       keyRevoke    `cmd:"" help:"Revoke a key and close its open streams."`
	RotateMaster rotateMaster `cmd:"" name:"rotate-master" help:"Replace the master key that encrypts stored secrets."`
}

type keyCreate struct {
	config.DataFlags
	User    string         `name:"user" required:"" placeholder:"NAME" help:"User who owns the key."`
	Admin   bool           `name:"admin" help:"Create an admin key, which can manage users and keys."`
	Name    string         `name:"name" placeholder:"LABEL" help:"Label of the key."`
	Expires *time.Duration `name:"expires" placeholder:"720h" help:"Time until the key expires. Default: never."`
	initFlag
}

// Run makes a key.
func (c *keyCreate) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	return change(ctx, c.DataFlags, c.open(open), func(g *access.Gate) error {
		var life time.Duration // for ever
		if c.Expires != nil {
			if life = *c.Expires; life <= 0 {
				return errors.New("--expires must be a positive duration such as 720h; omit it for a key that never expires")
			}
		}
		plain, _, err := g.Create(ctx, c.User, c.Name, c.Admin, life)
		if err == nil {
			_, err = fmt.Fprintln(o.Stdout, plain)
		}
		return err
	})
}

type keyList struct {
	config.DataFlags
	User string `name:"user" placeholder:"NAME" help:"List only the keys of this user."`
}

// Run lists keys.
func (c *keyList) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	d, err := open.Existing(ctx, c.DataFlags)
	if err != nil {
		return err
	}
	defer d.Store.Close()
	keys, err := d.Gate.List(ctx, c.User)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSER\tNAME\tADMIN\tCREATED\tEXPIRES\tSTATE")
	for _, k := range keys {
		expires, state := "never", "active"
		if k.ExpiresAt != nil {
			expires = k.ExpiresAt.Format(time.DateTime)
		}
		switch {
		case k.RevokedAt != nil:
			state = "revoked"
		case !k.Usable(time.Now()):
			state = "expired"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\t%s\t%s\n", k.ID, k.User, k.Label, k.Admin, k.CreatedAt.Format(time.DateTime), expires, state)
	}
	return w.Flush()
}

type keyRevoke struct {
	config.DataFlags
	ID    string `arg:"" help:"Key ID, as shown by deckhand key list."`
	Force bool   `name:"force" help:"Revoke the key even if it is the last admin key."`
}

// Run revokes a key.
func (c *keyRevoke) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	return change(ctx, c.DataFlags, open.Existing, func(g *access.Gate) error {
		k, err := g.Revoke(ctx, c.ID, c.Force)
		if errors.Is(err, access.ErrNotFound) {
			return fmt.Errorf("key %s not found; list keys with: deckhand key list", c.ID)
		}
		if err == nil {
			fmt.Fprintf(o.Stdout, "revoked %s of %s\n", k.ID, k.User)
		}
		return err
	})
}

type rotateMaster struct{ config.DataFlags }

// Run rotates the master key. With DECKHAND_MASTER_KEY the new one comes from DECKHAND_NEW_MASTER_KEY.
func (c *rotateMaster) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	d, err := open.Existing(ctx, c.DataFlags)
	if err != nil {
		return err
	}
	defer d.Store.Close()
	env := config.MasterKey()
	keyring, err := secret.OpenKeyring(ctx, c.DataDir, env, d.Store)
	if err != nil {
		return err
	}
	if env == "" {
		if err := keyring.Rotate(ctx); err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Stdout, "The master key in the data directory was replaced. A running server uses the new key.")
		return err
	}
	next := os.Getenv("DECKHAND_NEW_MASTER_KEY")
	if next == "" {
		return errors.New("the master key comes from DECKHAND_MASTER_KEY; set the new one in DECKHAND_NEW_MASTER_KEY (32 bytes as base64 or hex)")
	}
	if err := keyring.RotateTo(ctx, next); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Stdout, "The master key was replaced. Set DECKHAND_MASTER_KEY to the new key and restart the server.")
	return err
}
