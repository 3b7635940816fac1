package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cli"
)

type userCmd struct {
	Create  userCreateCmd  `cmd:"" help:"Create a user."`
	List    userListCmd    `cmd:"" help:"List users."`
	Disable userDisableCmd `cmd:"" help:"Disable a user: keys stop working and streams are closed. No data is deleted."`
	Enable  userEnableCmd  `cmd:"" help:"Enable a disabled user."`
}

type userCreateCmd struct {
	common
	Name  string `arg:"" help:"User name: a-z, 0-9 and . _ @ -."`
	Admin bool   `name:"admin" help:"Allow the user to have admin keys."`
}

// Run makes a user.
func (c *userCreateCmd) Run(ctx context.Context, o *cli.Output) error {
	return c.change(ctx, openData, func(g *access.Gate) error {
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

type userListCmd struct{ common }

// Run lists users.
func (c *userListCmd) Run(ctx context.Context, o *cli.Output) error {
	d, err := openExisting(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	users, err := d.gate.Users(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tADMIN\tCREATED\tSTATE")
	for _, u := range users {
		state := "good"
		if u.Disabled {
			state = "disabled"
		}
		fmt.Fprintf(w, "%s\t%t\t%s\t%s\n", u.Name, u.Admin, u.CreatedAt.Format(time.DateTime), state)
	}
	return w.Flush()
}

type userDisableCmd struct {
	common
	Name  string `arg:"" help:"User name."`
	Force bool   `name:"force" help:"Disable the user even if no usable admin key remains."`
}

// Run locks a user out.
func (c *userDisableCmd) Run(ctx context.Context, o *cli.Output) error {
	return c.change(ctx, openExisting, func(g *access.Gate) error {
		return said(o, g.DisableUser(ctx, c.Name, c.Force), c.Name, "disabled")
	})
}

type userEnableCmd struct {
	common
	Name string `arg:"" help:"User name."`
}

// Run lets a user in again.
func (c *userEnableCmd) Run(ctx context.Context, o *cli.Output) error {
	return c.change(ctx, openExisting, func(g *access.Gate) error { return said(o, g.EnableUser(ctx, c.Name), c.Name, "enabled") })
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
