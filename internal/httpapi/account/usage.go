package account

import (
	"context"
	"net/http"
	"slices"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutUsage = "With an admin key, any user can be queried. The operator sets one monthly limit, which applies to each user."

// Usage is what the API must know of money.
type Usage struct {
	Ledger session.Ledger
	// Limit is what each user may spend in a month; 0 is no limit.
	Limit session.Money
}

type usageQuery struct {
	User string `query:"user" maxLength:"64" doc:"User name. Default: yourself. Only admins may name another user."`
}

// usageMonths is how many months are shown.
const usageMonths = 12

// getUsage says what a user spent.
func (d *Handlers) getUsage(ctx context.Context, c *rest.Call, q usageQuery, _ rest.None) (api.Usage, error) {
	user := c.Who.User
	if q.User != "" && q.User != user {
		if err := d.mayAskAbout(ctx, c, q.User); err != nil {
			return api.Usage{}, err
		}
		user = q.User
	}
	now := session.MonthOf(time.Now())
	found, err := d.Usage.Ledger.Spending(ctx, user, now.Add(1-usageMonths))
	if err != nil {
		return api.Usage{}, err
	}
	out := api.Usage{Month: string(now), Spent: found.In(now).Dollars(), Reserved: found.Reserved.Dollars()}
	if d.Usage.Limit > 0 {
		out.Limit = new(d.Usage.Limit.Dollars())
	}
	for i := range usageMonths {
		m := now.Add(-i)
		out.Months = append(out.Months, api.UsageMonth{Month: string(m), Spent: found.In(m).Dollars()})
	}
	return out, nil
}

// mayAskAbout reveals only to admins which users exist.
func (d *Handlers) mayAskAbout(ctx context.Context, c *rest.Call, user string) error {
	if !c.Who.Admin {
		return rest.Fail(http.StatusForbidden, api.CodeForbidden, "Only an admin key can get the usage of other users.")
	}
	users, err := d.Gate.Users(ctx)
	if err == nil && !slices.ContainsFunc(users, func(u access.User) bool { return u.Name == user }) {
		err = access.ErrNotFound
	}
	return err
}
