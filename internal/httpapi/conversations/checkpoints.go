package conversations

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const (
	aboutCheckpoints = "After each turn that changed files, the workspace is stored. The event checkpointed reports that it is stored. With a sandbox driver that keeps no checkpoints, the response is a 409."
	aboutRestore     = "Undoes the changes that the agent made to files after the event. Changes that you made yourself between turns, and your commits, are kept. If you changed a file that the agent changed too, nothing is restored until own_changes says what to do. " +
		"With conversation it also hides later events from the model; the log keeps them. Folders that a repository's .gitignore ignores stay as they are. The state before is stored, so that the restore can be undone. The response is a 409 while the agent is working."
	aboutUndo    = "Undo undoes what the restore changed, and later changes of the agent; redo undoes the undo. Changes that you made yourself since are kept. The response is a 409 if there is nothing to undo or redo, or while the agent is working."
	aboutCompare = "Compares this conversation with other, or with itself. An event_id of 0 means the current files."
)

func (d *Handlers) listCheckpoints(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Checkpoints, error) {
	points, st, err := d.Service.ListCheckpoints(ctx, c.Who.User, session.ID(p.ID))
	out := api.Checkpoints{Checkpoints: []api.Checkpoint{}, CanUndo: len(st.Undo) > 0, CanRedo: len(st.Redo) > 0}
	for _, x := range points {
		out.Checkpoints = append(out.Checkpoints, api.Checkpoint{EventID: x.UpTo, Time: x.At, Files: x.Files, Changed: x.Changed, LeftOut: x.LeftOut, Bytes: x.Bytes, BetweenTurns: x.BetweenTurns})
	}
	return out, err
}

func (d *Handlers) restore(ctx context.Context, c *rest.Call, p rest.InConversation, b api.RestoreConversation) (api.Restored, error) {
	files, given := b.Files.Get()
	return d.restoreAs(ctx, c, usecase.Restore{ID: session.ID(p.ID), Action: session.RestorePoint, Event: b.EventID, Files: files || !given, Conversation: b.Conversation.Value, Own: own(b.OwnChanges)})
}

func (d *Handlers) undoRestore(ctx context.Context, c *rest.Call, p rest.InConversation, b api.UndoRestore) (api.Restored, error) {
	return d.restoreAs(ctx, c, usecase.Restore{ID: session.ID(p.ID), Action: session.RestoreUndo, Own: own(b.OwnChanges)})
}

func (d *Handlers) redoRestore(ctx context.Context, c *rest.Call, p rest.InConversation, b api.UndoRestore) (api.Restored, error) {
	return d.restoreAs(ctx, c, usecase.Restore{ID: session.ID(p.ID), Action: session.RestoreRedo, Own: own(b.OwnChanges)})
}

// own translates own_changes.
func own(s string) usecase.Own {
	if s == api.OwnRefuse {
		return ""
	}
	return usecase.Own(s)
}

// restores documents that a route can refuse to restore files that the user changed too.
func restores(r rest.Route) rest.Route {
	document := r.Document
	r.Document = func(s *rest.Schemas, o *huma.Operation) {
		document(s, o)
		o.Responses["409"] = &huma.Response{Description: "Nothing was restored: you changed some of the files too (CONVERSATION$RESTORE_CONFLICT; repeat the request with own_changes), or the conversation does not allow it now.",
			Content: rest.JSONContent(s.Registry.Schema(reflect.TypeFor[api.RestoreConflict](), true, ""))}
	}
	return r
}

func (d *Handlers) restoreAs(ctx context.Context, c *rest.Call, what usecase.Restore) (api.Restored, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	what.User = c.Who.User
	done, err := d.Service.Restore(ctx, what)
	out := api.Restored{EventID: done.Point, Files: done.Files, Conversation: done.Conversation, Changed: done.Changed, Git: done.Git, Kept: []string{},
		CanUndo: len(done.State.Undo) > 0, CanRedo: len(done.State.Redo) > 0}
	for _, name := range done.Kept {
		out.Kept = append(out.Kept, strings.ToValidUTF8(name, "\uFFFD"))
	}
	return out, err
}

// compared names two sides of a comparison.
type compared struct {
	ID         string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Event      int64  `query:"event_id" default:"0" minimum:"0" doc:"Event of this conversation; 0: now."`
	Other      string `query:"other" maxLength:"100" pattern:"^[A-Za-z0-9_-]*$" doc:"Other conversation. Default: this one."`
	OtherEvent int64  `query:"other_event_id" default:"0" minimum:"0" doc:"Event of the other conversation; 0: now."`
	Renames    bool   `query:"renames" default:"false" doc:"Report a file that was renamed as renamed instead of as deleted and added."`
}

// comparedFile is compared for one file.
type comparedFile struct {
	ID         string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Event      int64  `query:"event_id" default:"0" minimum:"0" doc:"Event of this conversation; 0: now."`
	Other      string `query:"other" maxLength:"100" pattern:"^[A-Za-z0-9_-]*$" doc:"Other conversation. Default: this one."`
	OtherEvent int64  `query:"other_event_id" default:"0" minimum:"0" doc:"Event of the other conversation; 0: now."`
	Path       string `query:"path" required:"true" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	From       string `query:"from" maxLength:"12288" doc:"Path on this side, if the file was renamed."`
}

func (q comparedFile) command(c *rest.Call) usecase.Compare {
	return usecase.Compare{User: c.Who.User, ID: session.ID(q.ID), Event: q.Event, OtherID: session.ID(q.Other), OtherEvent: q.OtherEvent, Path: q.Path, From: q.From}
}

func (d *Handlers) compare(ctx context.Context, c *rest.Call, q compared, _ rest.None) (api.Comparison, error) {
	changes, err := d.Service.Compare(ctx, comparedFile{ID: q.ID, Event: q.Event, Other: q.Other, OtherEvent: q.OtherEvent}.command(c))
	out := api.Comparison{Files: []api.ComparedFile{}}
	for _, x := range changes {
		f := api.ComparedFile{Path: valid(x.Path), Status: x.Status, Size: x.Old, Other: x.New, Binary: x.Binary}
		if x.Counted {
			f.Added, f.Removed = &x.Added, &x.Removed
		}
		switch {
		case x.From != "" && q.Renames:
			f.From = new(valid(x.From))
		case x.From != "":
			out.Files = append(out.Files, api.ComparedFile{Path: valid(x.From), Status: "deleted", Size: x.Old, Binary: x.Binary})
			f = api.ComparedFile{Path: f.Path, Status: "added", Other: x.New, Binary: x.Binary}
		}
		out.Files = append(out.Files, f)
	}
	slices.SortStableFunc(out.Files, func(a, b api.ComparedFile) int { return strings.Compare(a.Path, b.Path) })
	return out, err
}

func valid(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

func (d *Handlers) compareFile(ctx context.Context, c *rest.Call, q comparedFile, _ rest.None) (api.FileComparison, error) {
	a, b, err := d.Service.CompareFile(ctx, q.command(c))
	if err == nil && (binary(a) || binary(b)) {
		err = &usecase.Refusal{Kind: usecase.Conflict, Code: api.CodeBinaryFile, Text: "The file is not text."}
	}
	return api.FileComparison{Original: text(a), Modified: text(b)}, err
}

func binary(b *[]byte) bool { return b != nil && !utf8.Valid(*b) }

func text(b *[]byte) *string {
	if b == nil {
		return nil
	}
	return new(string(*b))
}
