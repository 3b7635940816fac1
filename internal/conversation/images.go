package conversation

import (
	"context"
	"slices"

	"deckhand/api"
	"deckhand/internal/imagedata"
)

// checkImages refuses the first inline image of a message that cannot be decoded. at is where the command has the message.
// Decoding takes time and memory, so it is done once, where a message is stored, and for what a user may write to.
func checkImages(ctx context.Context, urls []string, at ...any) error {
	for i, u := range urls {
		msg, err := imagedata.Check(ctx, u)
		if err != nil {
			return err
		}
		if msg != "" {
			return api.Invalid("value_error", msg, append(slices.Clone(at), "image_urls", i)...)
		}
	}
	return nil
}
