package conversation

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/v0"
)

// CheckMessage refuses a message that says and shows nothing. field is where the command has the text.
func CheckMessage(m session.UserSaid, field ...any) error {
	if strings.TrimSpace(m.Text) == "" && len(m.Images) == 0 && len(m.Files) == 0 {
		return api.Invalid("string_too_short", "A message needs text, an image or a file.", field...)
	}
	for i, u := range m.Images {
		if typ, msg := v0.CheckImageURL(u); typ != "" {
			return api.Invalid(typ, msg, "image_urls", i)
		}
	}
	return nil
}

// Say records a message in a conversation of the user. A message that was delivered before, as its Key tells, changes
// nothing.
func (s *Service) Say(ctx context.Context, user string, id session.ID, m session.UserSaid) (session.State, error) {
	return s.say(ctx, user, id, m)
}

// say is Say for a command that has the message below the path at.
func (s *Service) say(ctx context.Context, user string, id session.ID, m session.UserSaid, at ...any) (session.State, error) {
	if err := CheckMessage(m, "message"); err != nil {
		return session.State{}, err
	}
	var stored settings.Settings
	if len(m.Images) > 0 {
		if _, err := s.Row(ctx, user, id); err != nil {
			return session.State{}, err
		}
		var err error
		if stored, err = s.stored(ctx, user); err != nil {
			return session.State{}, err
		}
		if err = checkImages(ctx, m.Images, at...); err != nil {
			return session.State{}, err
		}
	}
	release := func() {}
	defer func() { release() }()
	st, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		if len(m.Images) > 0 {
			if r := s.CheckModel(&stored, Use{Model: st.Overrides.Model, Images: true}); r != nil {
				return nil, r
			}
		}
		out, err := st.Say(m)
		if err != nil {
			return nil, err
		}
		release() // decided again
		if release, err = s.reserve(user, id); err != nil {
			return nil, err
		}
		title, err := s.firstWords(ctx, st, user, m.Text)
		return append(out, title...), err
	})
	if errors.Is(err, session.ErrDuplicate) {
		return st, nil
	}
	if err == nil {
		s.arrived(st)
		runtime.Gosched() // the agent begins before the response is written
	}
	return st, err
}

// firstWords makes the first words of a message the title of a conversation that has none, whatever the way it came.
func (s *Service) firstWords(ctx context.Context, st session.State, user, message string) ([]session.Payload, error) {
	return st.FirstWords(message, func(text string) (string, error) {
		masker, err := s.Settings.Masker(ctx, user)
		if err != nil {
			return "", err
		}
		return masker.String(text), nil
	})
}

// Compact asks the agent to replace the history with a summary. The loop does this when no step is in progress.
func (s *Service) Compact(ctx context.Context, user string, id session.ID, instructions string) (session.State, error) {
	return s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		return st.AskCompact(session.CompactAsked{Instructions: instructions})
	})
}

// Type runs a command of the user in the conversation's shell.
func (s *Service) Type(ctx context.Context, user string, id session.ID, command string) error {
	_, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) { return st.Type(command) })
	return err
}

// Act does what a legacy client wants: say, pause, stop, resume, approve, reject or run.
func (s *Service) Act(ctx context.Context, user string, id session.ID, in v0.Intent) error {
	var err error
	switch in.Kind {
	case v0.Pause:
		_, err = s.Pause(ctx, user, id, in.Now)
	case v0.Stop:
		_, _, err = s.Stop(ctx, user, id, StoppedByUser)
	case v0.Resume:
		err = s.Resume(ctx, user, id)
	case v0.Approve, v0.Reject:
		err = s.Decide(ctx, user, id, Decision{Approve: in.Kind == v0.Approve})
	case v0.Run:
		err = s.Type(ctx, user, id, in.Command)
	default:
		if err = CheckMessage(in.Message, "args", "content"); err != nil {
			return err
		}
		_, err = s.say(ctx, user, id, in.Message, "args")
	}
	return err
}
