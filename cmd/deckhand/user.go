package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"deckhand/internal/access"
)

type userCmd struct {
	Create  userCreateCmd  `cmd:"" help:"Make a user."`
	List    userListCmd    `cmd:"" help:"List users."`
	Disable userDisableCmd `cmd:"" help:"Lock a user out: keys stop working and streams are closed. Nothing is deleted."`
	Enable  userEnableCmd  `cmd:"" help:"Let a disabled user in again."`
}

type userCreateCmd struct {
	common
	Name  string `arg:"" help:"Name: a-z, 0-9 and . _ @ -."`
	Admin bool   `name:"admin" help:"May have admin keys."`
}

// Run makes a user.
func (c *userCreateCmd) Run(ctx context.Context, o *output) error {
	return c.change(ctx, func(g *access.Gate) error {
		u, err := g.CreateUser(ctx, c.Name, c.Admin)
		if errors.Is(err, access.ErrExists) {
			return fmt.Errorf("there is a user %s already", c.Name)
		}
		if err == nil {
			fmt.Fprintf(o.stdout, "made the user %s; deckhand key create --user %s makes a key\n", u.Name, u.Name)
		}
		return err
	})
}

type userListCmd struct{ common }

// Run lists users.
func (c *userListCmd) Run(ctx context.Context, o *output) error {
	d, err := openData(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	users, err := d.gate.Users(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
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
	Name  string `arg:"" help:"The user's name."`
	Force bool   `name:"force" help:"Even if nobody could administer the server then."`
}

// Run locks a user out.
func (c *userDisableCmd) Run(ctx context.Context, o *output) error {
	return c.change(ctx, func(g *access.Gate) error {
		return said(o, g.DisableUser(ctx, c.Name, c.Force), c.Name, "disabled")
	})
}

type userEnableCmd struct {
	common
	Name string `arg:"" help:"The user's name."`
}

// Run lets a user in again.
func (c *userEnableCmd) Run(ctx context.Context, o *output) error {
	return c.change(ctx, func(g *access.Gate) error { return said(o, g.EnableUser(ctx, c.Name), c.Name, "enabled") })
}

func said(o *output, err error, name, what string) error {
	if errors.Is(err, access.ErrNotFound) {
		return fmt.Errorf("there is no user %s; deckhand user list shows them", name)
	}
	if err == nil {
		fmt.Fprintf(o.stdout, "%s %s\n", what, name)
	}
	return err
}
