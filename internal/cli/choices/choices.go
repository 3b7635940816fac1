// Package choices applies the flags of a terminal to the conversations that it opens, and reads what is in force for one.
// The server may belong to another terminal in the same folder, whose flags must not decide.
package choices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/llm/catalogue"
)

// Flags are those that choose the model, limits and approvals.
type Flags = config.SettingsFlags

// Check refuses flags that cannot be applied to a session on the server of another terminal, unless they are in force there.
func Check(ctx context.Context, c *client.Client, f Flags, joined bool) error {
	if !joined {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := c.Settings(ctx)
	if err != nil {
		return cli.Plainly(err)
	}
	if flag := f.Conflict(now); flag != "" {
		return cli.Usagef("%s cannot be used while another terminal has a session in this folder: its server has another value; close that session first, or omit the flag", flag)
	}
	return nil
}

// Apply makes a conversation follow the flags. joined means that the server runs in another process; then its flags are in
// force unless the conversation has its own choices. An agent never asks less than the flags say, or than without flags.
func Apply(ctx context.Context, c *client.Client, id string, f Flags, joined bool) error {
	settings, err := c.Settings(ctx)
	if err != nil {
		return cli.Plainly(err)
	}
	now, err := c.Overrides(ctx, id)
	if err != nil {
		return cli.Plainly(err)
	}
	in, want := f.Overrides(now, joined), f.Approval()
	if want == "" {
		if want = settings.Asks(); joined && want == "never" {
			want = "risky"
		}
	}
	if has := Text(now.Approval); has != want && (joined || has != "") {
		in.Approval = api.Some(want)
	}
	if in == (api.SetOverrides{}) {
		return nil
	}
	done, err := c.SetOverrides(ctx, id, in)
	switch {
	case err != nil:
		return fmt.Errorf("cannot apply the flags to this session: %w", cli.Plainly(err))
	case in.Approval.Set && Text(done.Approval) != want:
		return errors.New("the server does not support approvals per session")
	}
	return nil
}

// patience is the timeout for reading what is in force.
const patience = 15 * time.Second

// InForce is what holds for a conversation, or for the next one.
type InForce struct {
	Model string
	// Mode is the approval mode as shown in the status line.
	Mode   string
	Plan   bool
	Window int64 // of the model
}

// modes are the approval modes as shown in the status line.
var modes = map[string]string{"never": "never asks", "risky": "asks when risky", "always": "always asks"}

// Read reads what is in force for a conversation. Without an ID, it is what holds for a new one with the flags.
func Read(ctx context.Context, c *client.Client, id string, f Flags, joined bool) (InForce, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	settings, err := c.Settings(ctx)
	if err != nil {
		return InForce{}, cli.Plainly(err)
	}
	asks := settings.Asks()
	out := InForce{Model: settings.Model()}
	if id != "" {
		now, err := c.Overrides(ctx, id)
		if err != nil {
			return InForce{}, cli.Plainly(err)
		}
		out.Model, out.Plan, asks = cmp.Or(now.Model(), out.Model), now.PlanMode, cmp.Or(Text(now.Approval), asks)
	} else if joined {
		if asks == "never" {
			asks = "risky"
		}
		out.Model, asks = cmp.Or(f.Model, out.Model), cmp.Or(f.Approval(), asks)
	}
	out.Mode, out.Window = modes[asks], catalogue.New(nil).Info(out.Model).Window
	return out, nil
}

// Changed describes what is different from before, "" for nothing.
func (f InForce) Changed(model, mode string) string {
	switch {
	case mode != "" && f.Mode != mode:
		return "approvals changed: the agent " + f.Mode
	case model != "" && f.Model != model:
		return "model: " + f.Model
	}
	return ""
}

// Text returns a text that may be missing.
func Text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
