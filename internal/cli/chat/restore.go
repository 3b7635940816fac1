package chat

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/track"
	"deckhand/internal/native"
)

// restoring is the timeout of a restore, which may write many files.
const restoring = 5 * time.Minute

// turns reads the turns of a conversation.
func (s *conversation) turns(ctx context.Context, id string) (*track.Turns, error) {
	t, from := &track.Turns{}, int64(0)
	for {
		page, err := s.Client.Events(ctx, id, url.Values{"include_types": {track.TurnKinds}, "limit": {"100"}, "start_id": {strconv.FormatInt(from, 10)}})
		if err != nil {
			return nil, cli.Plainly(err)
		}
		for _, e := range page.Events {
			events, err := native.Read(e)
			if err != nil {
				return nil, err
			}
			for _, one := range events {
				t.Remember(one)
			}
			from = e.ID + 1
		}
		if !page.HasMore || len(page.Events) == 0 {
			return t, nil
		}
	}
}

// undo restores the files and the conversation to before the last turn. It returns the messages of that turn, and what could not
// be restored.
func (s *conversation) undo(ctx context.Context, id string) (text, notice string, err error) {
	ctx, cancel := context.WithTimeout(ctx, restoring)
	defer cancel()
	t, err := s.turns(ctx, id)
	if err != nil {
		return "", "", err
	}
	number, text, ok := t.Last()
	if !ok {
		return "", "", errors.New("nothing to undo")
	}
	done, err := s.Client.Restore(ctx, id, api.RestoreConversation{EventID: number - 1, Conversation: api.Some(true)})
	if err != nil {
		return "", "", cli.Plainly(err)
	}
	return text, notRestored(done), nil
}

// redo takes back the last undo.
func (s *conversation) redo(ctx context.Context, id string) (notice string, err error) {
	ctx, cancel := context.WithTimeout(ctx, restoring)
	defer cancel()
	t, err := s.turns(ctx, id)
	if err != nil {
		return "", err
	}
	if !t.Redoes() {
		return "", errors.New("nothing to redo: /redo takes back an /undo, until the next message")
	}
	done, err := s.Client.UndoRestore(ctx, id)
	if err != nil {
		return "", cli.Plainly(err)
	}
	return notRestored(done), nil
}

// notRestored names the files that could not be restored. The event of the restore says the rest.
func notRestored(done api.Restored) string {
	if len(done.Kept) == 0 {
		return ""
	}
	return "not restored: " + strings.Join(done.Kept, ", ")
}
