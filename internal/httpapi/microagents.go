package httpapi

import (
	"context"

	"deckhand/api"
)

const aboutMicroagents = "Lists the microagents of the server, the user and the repository. A repository's microagent replaces one of the user with the same name, and a user's one of the server. " +
	"Does not start the sandbox; until the workspace exists, the repository's microagents are missing. Skills are not included."

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
