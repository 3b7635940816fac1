package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/secret"
)

type keyCmd struct {
	Create       keyCreateCmd    `cmd:"" help:"Make a key and print it, and nothing else. The user is made when there is none of that name."`
	List         keyListCmd      `cmd:"" help:"List keys; the keys themselves are stored nowhere."`
	Revoke       keyRevokeCmd    `cmd:"" help:"Revoke a key; its open streams are closed before this returns."`
	RotateMaster rotateMasterCmd `cmd:"" name:"rotate-master" help:"Replace the master key that seals stored secrets."`
}

type keyCreateCmd struct {
	common
	User    string         `name:"user" required:"" placeholder:"NAME" help:"Whose key."`
	Admin   bool           `name:"admin" help:"The key may manage users and keys."`
	Name    string         `name:"name" placeholder:"LABEL" help:"A label for lists."`
	Expires *time.Duration `name:"expires" placeholder:"720h" help:"How long the key is good. Default: for ever."`
}

// Run makes a key.
func (c *keyCreateCmd) Run(ctx context.Context, o *output) error {
	return c.change(ctx, func(g *access.Gate) error {
		var life time.Duration // for ever
		if c.Expires != nil {
			if life = *c.Expires; life <= 0 {
				return errors.New("--expires is a time to come, such as 720h; leave it out for a key that is good for ever")
			}
		}
		plain, _, err := g.Create(ctx, c.User, c.Name, c.Admin, life)
		if err == nil {
			_, err = fmt.Fprintln(o.stdout, plain)
		}
		return err
	})
}

type keyListCmd struct {
	common
	User string `name:"user" placeholder:"NAME" help:"Only this user's."`
}

// Run lists keys.
func (c *keyListCmd) Run(ctx context.Context, o *output) error {
	d, err := openData(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	keys, err := d.gate.List(ctx, c.User)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSER\tNAME\tADMIN\tCREATED\tEXPIRES\tSTATE")
	for _, k := range keys {
		expires, state := "never", "good"
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

type keyRevokeCmd struct {
	common
	ID    string `arg:"" help:"The key's id, from key list."`
	Force bool   `name:"force" help:"Even if it is the last admin key."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(ctx context.Context, o *output) error {
	return c.change(ctx, func(g *access.Gate) error {
		k, err := g.Revoke(ctx, c.ID, c.Force)
		if errors.Is(err, access.ErrNotFound) {
			return fmt.Errorf("there is no key with the id %s; deckhand key list shows them", c.ID)
		}
		if err == nil {
			fmt.Fprintf(o.stdout, "revoked %s of %s\n", k.ID, k.User)
		}
		return err
	})
}

type rotateMasterCmd struct{ common }

// Run rotates the master key. With DECKHAND_MASTER_KEY the new one comes from DECKHAND_NEW_MASTER_KEY.
func (c *rotateMasterCmd) Run(ctx context.Context, o *output) error {
	d, err := openData(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	env := os.Getenv("DECKHAND_MASTER_KEY")
	keyring, err := secret.OpenKeyring(ctx, c.DataDir, env, d.db)
	if err != nil {
		return err
	}
	if env == "" {
		if err := keyring.Rotate(ctx); err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.stdout, "The master key in the data dir was replaced; a running server goes on with the new one.")
		return err
	}
	next := os.Getenv("DECKHAND_NEW_MASTER_KEY")
	if next == "" {
		return errors.New("the master key comes from DECKHAND_MASTER_KEY, so give the new one in DECKHAND_NEW_MASTER_KEY (32 bytes as base64 or hex)")
	}
	if err := keyring.RotateTo(ctx, next); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.stdout, "Done. From now on start the server with the new key in DECKHAND_MASTER_KEY; restart a running one.")
	return err
}

// change opens the data, applies a change of keys or users and tells a running server.
func (c common) change(ctx context.Context, do func(*access.Gate) error) error {
	d, err := openData(ctx, c, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	if err := do(d.gate); err != nil {
		return err
	}
	return tellServer(c.DataDir)
}
