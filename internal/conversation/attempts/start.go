package attempts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/idempotency"
	"deckhand/internal/queue"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

func refuse(kind conversation.Kind, code, text string) *conversation.Refusal {
	return &conversation.Refusal{Kind: kind, Code: code, Text: text}
}

// Start creates a fork for each attempt and sends it the task. All checks are made before anything is stored. Stored
// attempts are started even if this process dies: the worker then starts them after a restart.
func (s *Service) Start(ctx context.Context, c conversation.StartAttempts) error {
	switch n := len(c.Request.Attempts); {
	case strings.TrimSpace(c.Request.Task) == "":
		return api.Invalid("string_too_short", "task must not be blank.", "task")
	case n < minSet || n > maxSet:
		return api.Invalid("too_short", fmt.Sprintf("Send %d to %d attempts.", minSet, maxSet), "attempts")
	}
	if _, err := s.Conversations.Row(ctx, c.User, c.From); err != nil {
		return err
	}
	st, err := s.Conversations.Sessions.Load(ctx, c.From)
	if err != nil {
		return err
	}
	set, err := s.plan(ctx, c)
	if err != nil {
		return err
	}
	switch there, err := s.started(ctx, set); {
	case err != nil:
		return err
	case !there:
		if err := s.check(ctx, c, st); err != nil {
			return err
		}
		if err := s.Conversations.CheckRoom(ctx, c.User, idsOf(set)...); err != nil {
			return err
		}
	}
	stored, tooMany, err := s.push(ctx, set, Max)
	if err != nil {
		return err
	}
	if tooMany {
		return refuse(conversation.Conflict, api.CodeConversationRefused,
			fmt.Sprintf("A conversation can have at most %d attempts. Keep one of the earlier attempts, or delete some of them.", Max))
	}
	return s.beginAll(ctx, stored)
}

// started reports whether the attempts were stored by an earlier request with the same retry key.
func (s *Service) started(ctx context.Context, set []Attempt) (bool, error) {
	all, err := s.all(ctx, set[0].From)
	for _, a := range all {
		if a.Set == set[0].Set {
			return true, err
		}
	}
	return false, err
}

// check returns a refusal if the attempts cannot be started.
func (s *Service) check(ctx context.Context, c conversation.StartAttempts, st session.State) error {
	switch {
	case st.Created.Parent != "":
		return refuse(conversation.Conflict, api.CodeConversationRefused, "This conversation was delegated by conversation "+string(st.Created.Parent)+" and shares its files. Start attempts there.")
	case st.Busy() || len(st.Typed) > 0:
		return refuse(conversation.Conflict, api.CodeConversationRefused, "The agent is working. Wait until it has finished, or stop it, then start attempts.")
	case c.Request.EventID.Value > st.Last:
		return api.Invalid("less_than_equal", "The conversation has no event with this number.", "event_id")
	}
	if err := s.Conversations.CheckSettings(ctx, c.User, nil); err != nil {
		return err
	}
	var refused error
	err := s.Conversations.Settings.Read(ctx, c.User, func(stored *settings.Settings) {
		for i, one := range c.Request.Attempts {
			model := strings.TrimSpace(one.Model.Value)
			if model == "" {
				continue
			}
			if r := s.Conversations.CheckModel(stored, conversation.Use{Model: model, Key: true, Price: true, Limited: st.Overrides.Limited}); r != nil {
				refused = refuse(r.Kind, r.Code, fmt.Sprintf("attempts[%d].model: %s", i, r.Text))
				return
			}
		}
	})
	return errors.Join(err, refused)
}

// plan creates the attempts of a command. Their IDs are the same when the command is retried.
func (s *Service) plan(ctx context.Context, c conversation.StartAttempts) ([]Attempt, error) {
	b := c.Request
	id := c.RetryKey
	if id == "" {
		id = string(s.Conversations.NewID())
	}
	set := idempotency.Digest("attempts", c.User, string(c.From), id)[:32]
	masker, err := s.Conversations.Settings.Masker(ctx, c.User)
	if err != nil {
		return nil, err
	}
	model, err := s.defaultModel(ctx, c.User)
	if err != nil {
		return nil, err
	}
	title, now := session.TitleFrom(masker.String(b.Task)), queue.Now()
	var out []Attempt
	for i, one := range b.Attempts {
		spec := Spec{Set: set, Number: i + 1, User: c.User, From: c.From, Event: b.EventID.Value, Trigger: c.Trigger, Task: b.Task,
			Title: fmt.Sprintf("Attempt %d: %s", i+1, title), Test: strings.TrimSpace(b.TestCommand.Value), Model: strings.TrimSpace(one.Model.Value), Default: model,
			Effort: one.ReasoningEffort.Value, Instructions: strings.TrimSpace(one.Instructions.Value)}
		out = append(out, Attempt{Spec: spec, ID: session.ID(spec.key()[:32]), State: Starting, At: now, next: now.Add(startTime)})
	}
	return out, nil
}

// key returns the retry key of the fork. The ID of the fork is a prefix of the key.
func (s Spec) key() string { return idempotency.Digest("attempt", s.Set, strconv.Itoa(s.Number)) }

// message returns the message for the agent: the task and the instructions.
func (s Spec) message() session.UserSaid {
	text := s.Task
	if s.Instructions != "" {
		text += "\n\n" + s.Instructions
	}
	return session.UserSaid{Text: text, Key: s.key(), Automated: true}
}

// beginAll starts attempts. If the first one is refused, it removes all of them, because the others would be refused too.
func (s *Service) beginAll(ctx context.Context, set []Attempt) error {
	for i, a := range set {
		if a.State != Starting {
			continue
		}
		err := s.begin(ctx, a)
		refused := conversation.RefusalOf(err)
		switch {
		case refused != nil && refused.RetryAfter > 0: // the queue became full since
			err = s.later(ctx, a, refused.RetryAfter)
		case refused != nil && i == 0:
			return errors.Join(err, s.remove(context.WithoutCancel(ctx), set...))
		case refused != nil:
			err = s.failed(ctx, a, refused.Text)
		case err == nil && i == 0:
			err = s.announce(ctx, set)
		}
		if err != nil { // the worker tries again
			s.wake()
			return err
		}
	}
	return nil
}

// begin creates the fork of an attempt, sets its model and sends it the task. It skips steps that were already done.
func (s *Service) begin(ctx context.Context, a Attempt) error {
	row, err := s.Conversations.Index.Row(ctx, a.ID)
	if err == nil && row.Deleted {
		return s.remove(ctx, a)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	made, err := s.Conversations.Fork(ctx, conversation.Fork{User: a.User, From: a.From, Event: a.Event, FilesAtEvent: a.Event > 0, Title: api.Some(a.Title), Trigger: a.Trigger, RetryKey: a.key()})
	if err != nil {
		return err
	}
	choose := api.SetOverrides{}
	if a.Model != "" {
		choose = api.OverrideModel(a.Model)
	}
	if a.Effort != "" {
		choose.ReasoningEffort = api.Some(a.Effort)
	}
	if choose != (api.SetOverrides{}) {
		if _, err := s.Conversations.Override(ctx, a.User, made.ID, choose); err != nil {
			return err
		}
	}
	s.watch(a) // before the agent can finish
	if _, err := s.Conversations.Say(ctx, a.User, made.ID, a.message()); err != nil {
		return err
	}
	now, found, err := s.change(ctx, a, func(now *Attempt) {
		if now.State == Starting {
			now.State, now.next, now.tries = Started, time.Time{}, 0
		}
	})
	if err == nil && (!found || now.State == Deleting) { // another one was kept in the meantime
		err = s.discard(ctx, a)
	}
	return err
}

// idsOf are the conversations of attempts.
func idsOf(set []Attempt) []session.ID {
	var ids []session.ID
	for _, a := range set {
		ids = append(ids, a.ID)
	}
	return ids
}

// later has the worker start an attempt when the queue may have room for it.
func (s *Service) later(ctx context.Context, a Attempt, after time.Duration) error {
	_, _, err := s.change(ctx, a, func(now *Attempt) {
		if now.State == Starting {
			now.next = queue.Now().Add(after)
		}
	})
	return err
}

// failed records the reason why an attempt could not be started.
func (s *Service) failed(ctx context.Context, a Attempt, why string) error {
	_, _, err := s.change(context.WithoutCancel(ctx), a, func(now *Attempt) {
		if now.State == Starting {
			now.State, now.Problem, now.next = Failed, why, time.Time{}
		}
	})
	s.unwatch(a)
	return err
}

// announce adds a notice about the attempts to the original conversation, and a title if it has none.
func (s *Service) announce(ctx context.Context, set []Attempt) error {
	a := set[0]
	masker, err := s.Conversations.Settings.Masker(ctx, a.User)
	if err != nil {
		return err
	}
	note := session.Noted{ID: api.CodeAttemptsStarted, Message: fmt.Sprintf("%d attempts started: %s", len(set), session.TitleFrom(masker.String(a.Task)))}
	return s.Conversations.Note(ctx, a.User, a.From, note, a.Task)
}

// discard deletes the conversation of an attempt, and then the attempt.
func (s *Service) discard(ctx context.Context, a Attempt) error {
	err := s.Conversations.Delete(ctx, a.User, a.ID)
	if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrDeleted) {
		return err
	}
	return s.remove(ctx, a)
}
