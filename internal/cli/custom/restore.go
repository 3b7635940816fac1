package custom

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli/track"
	"deckhand/internal/native"
)

// turns reads the turns of a conversation.
func (s Source) turns(ctx context.Context, id string) (*track.Turns, error) {
	t, from := &track.Turns{}, int64(0)
	for {
		page, err := s.Client.Events(ctx, id, url.Values{"include_types": {track.TurnKinds}, "limit": {"100"}, "start_id": {strconv.FormatInt(from, 10)}})
		if err != nil {
			return nil, err
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

// Conflict returns the files that the user changed too, if a restore was refused because of them.
func Conflict(err error) *api.RestoreConflict {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Conflict
	}
	return nil
}

// refusal returns the error of a request that the state of the conversation does not allow, nil for another one.
func refusal(err error) *client.Error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return refused
	}
	return nil
}

// OwnText says what can be done about a conflict.
func OwnText(c *api.RestoreConflict, command string) string {
	return strings.TrimSuffix(c.Message, " Keep your versions, or restore them too.") + " Type /" + command + " keep to keep your versions, or /" + command + " overwrite to restore them too."
}

// CheckOwn refuses an argument of /undo and /redo that is not a choice.
func CheckOwn(own string) error {
	if own == "" || own == api.OwnKeep || own == api.OwnOverwrite {
		return nil
	}
	return errors.New("use keep or overwrite, or nothing")
}

// Undo restores the files and the conversation to before the last turn. own says what to do with files that the user changed
// too. It returns the messages of that turn, and what could not be restored.
func (s Source) Undo(ctx context.Context, id, own string) (text, missing string, err error) {
	t, err := s.turns(ctx, id)
	if err != nil {
		return "", "", err
	}
	number, text, ok := t.Last()
	if !ok {
		return "", "", errors.New("nothing to undo")
	}
	points, err := s.Client.Checkpoints(ctx, id)
	refused := refusal(err) // not all drivers support checkpoints
	if refused != nil {
		missing, err = "files were not restored: "+refused.Message, nil
	}
	if err != nil {
		return "", "", err
	}
	before := api.RestoreConversation{EventID: number - 1, Files: api.Some(refused == nil), Conversation: api.Some(true), OwnChanges: own}
	done, err := s.Client.Restore(ctx, id, before)
	// That of the last turn may not be in the list yet, so only the refusal tells that there are none.
	if len(points.Checkpoints) == 0 && refusal(err) != nil && Conflict(err) == nil {
		before.Files = api.Some(false)
		done, err = s.Client.Restore(ctx, id, before)
	}
	if err != nil {
		return "", "", err
	}
	return text, missing + notRestored(done), nil
}

// Redo redoes the last undone turn. It returns what could not be restored.
func (s Source) Redo(ctx context.Context, id, own string) (missing string, err error) {
	t, err := s.turns(ctx, id)
	if err != nil {
		return "", err
	}
	if !t.Redoes() {
		return "", errors.New("nothing to redo: /redo works after /undo, until you send a message")
	}
	done, err := s.Client.UndoRestore(ctx, id, api.UndoRestore{OwnChanges: own})
	return notRestored(done), err
}

// notRestored returns a notice with the files that could not be restored, "" if there are none.
func notRestored(done api.Restored) string {
	if len(done.Kept) == 0 {
		return ""
	}
	return "not restored: " + strings.Join(done.Kept, ", ")
}
