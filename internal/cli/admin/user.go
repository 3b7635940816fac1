package admin

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
)

// User is deckhand user.
type User struct {
	Create  userCreate  `cmd:"" help:"Create a user."`
	List    userList    `cmd:"" help:"List users."`
	Disable userDisable `cmd:"" help:"Disable a user: keys stop working, streams are closed, and agents and sandboxes are stopped. No data is deleted."`
	Enable  userEnable  `cmd:"" help:"Enable a disabled user."`
}

type userCreate struct {
	config.DataFlags
	Name  string `arg:"" help:"User name: a-z, 0-9 and . _ @ -."`
	Admin bool   `name:"admin" help:"Allow the user to have admin keys."`
	initFlag
}

// Run makes a user.
func (c *userCreate) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	return change(ctx, c.DataFlags, c.open(open), func(g *access.Gate) error {
		u, err := g.CreateUser(ctx, c.Name, c.Admin)
		if errors.Is(err, access.ErrExists) {
			return fmt.Errorf("user %s already exists", c.Name)
		}
		if err == nil {
			fmt.Fprintf(o.Stdout, "created user %s; create a key with: deckhand key create --user %s\n", u.Name, u.Name)
		}
		return err
	})
}

type userList struct{ config.DataFlags }

// Run lists users.
func (c *userList) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	d, err := open.Existing(ctx, c.DataFlags)
	if err != nil {
		return err
	}
	defer d.Store.Close()
	users, err := d.Gate.Users(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tADMIN\tCREATED\tSTATE")
	for _, u := range users {
		state := "active"
		if u.Disabled {
			state = "disabled"
		}
		fmt.Fprintf(w, "%s\t%t\t%s\t%s\n", u.Name, u.Admin, u.CreatedAt.Format(time.DateTime), state)
	}
	return w.Flush()
}

type userDisable struct {
	config.DataFlags
	Name  string `arg:"" help:"User name."`
	Force bool   `name:"force" help:"Disable the user even if no usable admin key remains."`
}

// Run locks a user out.
func (c *userDisable) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	return change(ctx, c.DataFlags, open.Existing, func(g *access.Gate) error {
		return said(o, g.DisableUser(ctx, c.Name, c.Force), c.Name, "disabled")
	})
}

type userEnable struct {
	config.DataFlags
	Name string `arg:"" help:"User name."`
}

// Run lets a user in again.
func (c *userEnable) Run(ctx context.Context, o *cli.Output, open *Opener) error {
	return change(ctx, c.DataFlags, open.Existing, func(g *access.Gate) error { return said(o, g.EnableUser(ctx, c.Name), c.Name, "enabled") })
}

func said(o *cli.Output, err error, name, what string) error {
	if errors.Is(err, access.ErrNotFound) {
		return fmt.Errorf("user %s not found; list users with: deckhand user list", name)
	}
	if err == nil {
		fmt.Fprintf(o.Stdout, "%s %s\n", what, name)
	}
	return err
}
