package portable

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"deckhand/api"
	"deckhand/internal/clip"
	"deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/takeover"
	"deckhand/internal/workspace"
)

// errBusy means that the user has another import in progress, and errFull that others have as many as the memory of a server is for.
var (
	errBusy = &conversation.Refusal{Kind: conversation.Conflict, Code: api.CodeConversationRefused, Text: "Another import of yours is in progress. Try again when it is finished."}
	errFull = &conversation.Refusal{Kind: conversation.Conflict, Code: api.CodeConversationRefused, Text: "The server is reading the files of other imports. Try again in a minute."}
)

// maxReading is how many files have their events in memory at the same time: up to 64 MiB each while they come, and several times as
// much while one after the other is converted.
const maxReading = 8

const (
	unfinished = " (import not finished)"
	untitled   = "Imported conversation"
	// cleanupTime bounds the removal of an import that failed.
	cleanupTime = time.Minute
)

// Import creates a conversation of the user from a file. It stores the events first, with a title that says that the import is not
// finished, then writes the workspace in its sandbox. If this fails, it deletes the conversation. The error for an invalid file is
// an *api.ValidationError.
func (s *Service) Import(ctx context.Context, user string, from io.Reader) (api.ImportedConversation, error) {
	out, err := s.run(ctx, user, from)
	var refused *BadFile
	if errors.As(err, &refused) {
		err = api.Invalid("value_error", "The file cannot be imported: "+refused.Reason+".", "file")
	}
	return out, err
}

func (s *Service) run(ctx context.Context, user string, from io.Reader) (api.ImportedConversation, error) {
	var out api.ImportedConversation
	leave, err := s.enter(user)
	if err != nil {
		return out, err
	}
	defer leave()
	log, ok := s.Conversations.Log.(session.WholeLog)
	if !ok {
		return out, errors.New("this store cannot import conversations")
	}
	r, err := newReader(from)
	if err != nil {
		return out, err
	}
	id := s.Conversations.NewID()
	finished, err := s.begin(id)
	if err != nil {
		return out, err
	}
	m, err := s.store(ctx, log, user, id, r, &out)
	if err != nil {
		return out, errors.Join(err, finished())
	}
	if err = s.importFiles(ctx, id, r, &out); err == nil {
		err = applier{s, user, id, &out}.apply(ctx, m)
	}
	if err == nil {
		err = s.Conversations.Rename(ctx, user, id, cmp.Or(takeover.CleanTitle(m.Title), untitled))
	}
	if err != nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer stop()
		if failure := s.Conversations.Delete(ctx, user, id); failure != nil {
			return api.ImportedConversation{}, errors.Join(err, failure) // Sweep deletes it
		}
		return api.ImportedConversation{}, errors.Join(err, finished())
	}
	_ = finished() // Sweep also recognizes a finished import by its title
	return out, nil
}

// store reads the events of a file and stores them as a new conversation.
func (s *Service) store(ctx context.Context, log session.WholeLog, user string, id session.ID, r *reader, out *api.ImportedConversation) (m manifest, err error) {
	s.mu.Lock()
	full := s.reading >= maxReading
	if !full {
		s.reading++
	}
	s.mu.Unlock()
	if full {
		return m, errFull
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reading--
	}()
	t, m, err := r.conversation()
	if err != nil {
		return m, err
	}
	s.converting.Lock()
	defer s.converting.Unlock()
	t.Title = clip.Bytes(cmp.Or(takeover.CleanTitle(t.Title), untitled), maxText) + unfinished
	events, skipped := t.Convert(user, time.Now())
	if c, ok := events[0].Payload.(session.Created); ok {
		c.Machine = s.Machine
		events[0].Payload = c
	}
	batches, _, err := session.Import(id, events)
	if err != nil {
		return m, bad("its events are not a valid history")
	}
	*out = api.ImportedConversation{ConversationID: string(id), Events: len(t.Events) - skipped, SkippedEvents: skipped, SkippedLinks: []string{}, AppliedSettings: []string{}, SkippedSettings: []api.SkippedSetting{}}
	return m, log.AppendAll(ctx, batches)
}

// enter lets a user import one file at a time.
func (s *Service) enter(user string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[user] {
		return nil, errBusy
	}
	if s.busy == nil {
		s.busy = map[string]bool{}
	}
	s.busy[user] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, user)
	}, nil
}

// filler writes the files of an import into a workspace.
type filler struct {
	box   *sandbox.Sandbox
	room  int64
	links bytes.Buffer
	named []string
}

func (s *Service) importFiles(ctx context.Context, id session.ID, r *reader, out *api.ImportedConversation) error {
	var f *filler
	leave := func() {}
	defer func() { leave() }()
	err := r.files(func(entry file) error {
		if f == nil { // the sandbox is started for the first file
			if s.Workspaces == nil {
				return workspace.ErrNone
			}
			box, release, err := s.Workspaces.Use(ctx, id)
			if err != nil {
				return err
			}
			leave = release
			room, err := s.Workspaces.Room(ctx, id)
			if err != nil {
				return err
			}
			f = &filler{box: box, room: room}
		}
		out.Files++
		return f.add(ctx, entry)
	})
	if err != nil || f == nil {
		return err
	}
	return f.makeLinks(ctx, out)
}

func (f *filler) add(ctx context.Context, e file) error {
	switch e.header.Typeflag {
	case tar.TypeDir:
		if err := f.box.Mkdir(ctx, sandbox.InWorkspace(e.path)); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeSymlink: // last, so that nothing is written through one
		for _, s := range []string{e.header.Linkname, "./" + e.path} {
			f.links.WriteString(s)
			f.links.WriteByte(0)
		}
		f.named = append(f.named, e.path)
		return nil
	}
	if f.room -= e.header.Size; f.room < 0 {
		return bad("its files exceed the disk limit of a workspace on this server")
	}
	source := &failing{from: e.content}
	_, err := f.box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace(e.path), New: true, Mode: fs.FileMode(e.header.Mode)&0o777 | 0o600}, source)
	if source.err != nil {
		return notAFile(source.err)
	}
	return err
}

// makeLinks creates all symbolic links with one command in the sandbox.
func (f *filler) makeLinks(ctx context.Context, out *api.ImportedConversation) error {
	if len(f.named) == 0 {
		return nil
	}
	result, err := f.box.Run(ctx, sandbox.Process{Args: []string{"xargs", "-0", "-n", "2", "ln", "-s", "--"}, Own: true, Offline: true}, &f.links)
	if err != nil {
		return fmt.Errorf("create the symbolic links of the workspace: %w", err)
	}
	if result.Exit == 0 {
		return nil
	}
	for _, name := range f.named { // some may have been created
		if made, err := f.box.Stat(ctx, sandbox.InWorkspace(name)); err != nil || made.Mode.Type() != fs.ModeSymlink {
			out.SkippedLinks = append(out.SkippedLinks, name)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// failing records the error of a reader.
type failing struct {
	from io.Reader
	err  error
}

func (r *failing) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
