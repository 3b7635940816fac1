package conversations

import (
	"context"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

const aboutMicroagents = "Lists the microagents of the server, the user and the repository. A repository's microagent replaces one of the user with the same name, and a user's one of the server. " +
	"Does not start the sandbox; until the workspace exists, the repository's microagents are missing. Skills are not included."

func (d *Handlers) listMicroagents(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Microagents, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Microagents{}, err
	}
	out := api.Microagents{Microagents: []api.Microagent{}}
	if d.Microagents == nil {
		return out, nil
	}
	found, err := d.Microagents(ctx, c.Who.User, row.ID)
	if err != nil {
		return api.Microagents{}, err
	}
	for _, m := range found {
		// Older clients count the entries of these lists and do not expect null.
		m.Triggers, m.Inputs, m.Tools = rest.OrEmpty(m.Triggers), rest.OrEmpty(m.Inputs), rest.OrEmpty(m.Tools)
		out.Microagents = append(out.Microagents, m)
	}
	return out, nil
}
