package account

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

const aboutUsers = "Requires an admin key. Single sign-on users are created on their first login. To give another user access, create a key with POST /api/keys."

func (d *Handlers) listUsers(ctx context.Context, _ *rest.Call, _ rest.None, _ rest.None) ([]api.User, error) {
	users, err := d.Gate.Users(ctx)
	if err != nil {
		return nil, err
	}
	return d.userViews(ctx, users...)
}

// userViews adds what users have to who they are. All totals are read at once, however many users there are.
func (d *Handlers) userViews(ctx context.Context, users ...access.User) ([]api.User, error) {
	totals, err := d.Usage.Ledger.Totals(ctx, session.MonthOf(time.Now()))
	if err != nil {
		return nil, err
	}
	out := []api.User{}
	for _, u := range users {
		total := totals[u.Name]
		view := api.User{Name: u.Name, Admin: u.Admin, Disabled: u.Disabled, CreatedAt: u.CreatedAt, Conversations: total.Sessions, Spent: total.Spent.Dollars()}
		if d.Usage.Limit > 0 {
			view.Budget = new(d.Usage.Limit.Dollars())
		}
		out = append(out, view)
	}
	return out, nil
}

func (d *Handlers) createUser(ctx context.Context, _ *rest.Call, _ rest.None, b api.CreateUser) (api.User, error) {
	if err := access.CheckUserName(b.Name); err != nil {
		return api.User{}, api.Invalid("value_error", "name must be 1 to 64 characters: a-z, 0-9, '.', '_', '@' and '-', starting with a letter or digit.", "name")
	}
	u, err := d.Gate.CreateUser(ctx, b.Name, b.Admin.Value)
	if err != nil {
		return api.User{}, err
	}
	return d.userView(ctx, u)
}

type userPath struct {
	Name string `path:"name" maxLength:"64"`
}

// patchUser locks a user out or lets them in, and confirms their address. The last
// administrator stays.
func (d *Handlers) patchUser(ctx context.Context, _ *rest.Call, p userPath, b api.PatchUser) (api.User, error) {
	if disabled, ok := b.Disabled.Get(); ok {
		change := d.Gate.EnableUser
		if disabled {
			change = func(ctx context.Context, name string) error { return d.Gate.DisableUser(ctx, name, false) }
		}
		if err := change(ctx, p.Name); err != nil {
			return api.User{}, err
		}
	}
	u, err := d.Gate.User(ctx, p.Name)
	if err != nil {
		return api.User{}, err
	}
	if address, ok := b.VerifiedEmail.Get(); ok {
		if err := d.verifyEmail(ctx, p.Name, address); err != nil {
			return api.User{}, err
		}
	}
	return d.userView(ctx, u)
}

// verifyEmail confirms that an address is the user's, if it is the one in their settings.
func (d *Handlers) verifyEmail(ctx context.Context, user, address string) error {
	if !d.VerifiesEmail {
		return rest.Fail(http.StatusBadRequest, api.CodeBadRequest, "This server has neither single sign-on nor e-mail, so users set email_verified in their own settings.")
	}
	other := rest.Fail(http.StatusConflict, api.CodeConflict, "verified_email is not the e-mail address in the settings of "+user+".")
	stored, err := d.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) { // and none are made by this
		return other
	}
	if err != nil {
		return err
	}
	view, err := d.viewSettings(ctx, user, stored)
	if err != nil {
		return err
	}
	return d.Settings.Change(ctx, user, func(s *settings.Settings) error {
		has := rest.Deref(s.Email)
		if has == "" { // the provider's, which only the provider changes
			has = rest.Deref(view.Email)
		}
		if address != "" && !strings.EqualFold(address, has) {
			return other
		}
		s.VerifiedEmail = address
		return nil
	})
}

func (d *Handlers) userView(ctx context.Context, u access.User) (api.User, error) {
	views, err := d.userViews(ctx, u)
	if err != nil {
		return api.User{}, err
	}
	return views[0], nil
}
