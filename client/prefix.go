package client

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"deckhand/api"
)

// searchable is the number of characters of an ID that the server searches for. maxPages limits the search for shorter ones.
const searchable, maxPages = 8, 50

// ErrPrefixTooShort means that there are too many conversations to find one by so few characters.
var ErrPrefixTooShort = errors.New("the prefix is too short for so many conversations; use at least 8 characters of the ID")

// ConversationsWithPrefix returns conversations whose IDs begin with a text: all if there are none or one, otherwise at least two.
func (c *Client) ConversationsWithPrefix(ctx context.Context, id string) (found []api.Conversation, err error) {
	query := url.Values{"limit": {"100"}}
	if len(id) >= searchable {
		query.Set("query", id)
	}
	for range maxPages {
		page, err := c.Conversations(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Results {
			if strings.HasPrefix(one.ConversationID, id) {
				found = append(found, one)
			}
		}
		if page.NextPageID == nil || len(found) > 1 {
			return found, nil
		}
		query.Set("page_id", *page.NextPageID)
	}
	return nil, ErrPrefixTooShort
}
