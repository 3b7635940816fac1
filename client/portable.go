package client

import (
	"context"
	"io"
	"net/http"

	"deckhand/api"
)

// Export writes a conversation with its workspace to w, as one file that ImportConversation reads on any server. After an error, the written
// part is incomplete.
func (c *Client) Export(ctx context.Context, id string, w io.Writer) error {
	return c.save(ctx, item(id)+"/export", w)
}

// ImportConversation makes a conversation of a file that Export has written. It belongs to the owner of the key.
func (c *Client) ImportConversation(ctx context.Context, file io.Reader) (api.ImportedConversation, error) {
	req, err := c.request(ctx, http.MethodPost, "/api/conversations/import", io.NopCloser(file))
	if err != nil {
		return api.ImportedConversation{}, err
	}
	req.Header.Set("Content-Type", "application/gzip")
	return exchange[api.ImportedConversation](c, req, "")
}
