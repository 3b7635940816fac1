package trigger

import (
	"context"

	"deckhand/api"
	"deckhand/internal/conversation"
)

// Begin is a Config.Start that creates conversations by the rules of all doors.
func Begin(c *conversation.Service) func(ctx context.Context, s Start) error {
	return func(ctx context.Context, s Start) error {
		b := api.CreateConversation{ConversationID: api.Some(string(s.ID)), Repository: api.Some(s.Repository), GitProvider: api.Some(s.Provider), InitialUserMsg: api.Some(s.Text)}
		if s.Branch != "" {
			b.SelectedBranch = api.Some(s.Branch)
		}
		_, err := c.Create(ctx, conversation.Create{User: s.User, Trigger: conversation.TriggerResolver, RetryKey: s.Key, Outside: s.Outside, Request: b})
		return refused(err)
	}
}

// refused puts what the user could mend into this package's error.
func refused(err error) error {
	if r := conversation.RefusalOf(err); r != nil {
		if r.RetryAfter > 0 {
			return &BusyError{Msg: r.Text, After: r.RetryAfter}
		}
		return &RefusedError{Msg: r.Text, Code: r.Code, Branch: r.Code == api.CodeGitBranch}
	}
	return err
}
