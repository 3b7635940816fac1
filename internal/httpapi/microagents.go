package httpapi

import (
	"context"

	"deckhand/api"
)

const aboutMicroagents = "Those of the server, of the user and of the repository; of the same name, the last. " +
	"Nothing is started by looking; before there is a workspace, those of the repository are missing. Skills are not among them."

func listMicroagents(d *Door, ctx context.Context, c *call, p one, _ none) (api.Microagents, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Microagents{}, err
	}
	out := api.Microagents{Microagents: []api.Microagent{}}
	if d.Microagents == nil {
		return out, nil
	}
	found, err := d.Microagents(ctx, c.who.User, row.ID)
	if err != nil {
		return api.Microagents{}, err
	}
	for _, m := range found {
		// Older clients count the entries of these lists and do not expect null.
		m.Triggers, m.Inputs, m.Tools = orEmpty(m.Triggers), orEmpty(m.Inputs), orEmpty(m.Tools)
		out.Microagents = append(out.Microagents, m)
	}
	return out, nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
