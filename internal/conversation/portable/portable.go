// Package portable exports a conversation to a file and imports it on another installation: its events, its workspace, its
// title and its settings, without stored secrets.
//
// The file is a gzipped tar archive: deckhand.json, then trajectory/*.jsonl, then workspace/…, then SHA256 with a digest of the
// entries before it. Files are untrusted input: reader checks every entry, and Import stores events as imported ones.
package portable

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
	"deckhand/internal/workspace"
)

const (
	format  = "deckhand-conversation"
	version = 1

	manifestName  = "deckhand.json"
	eventsFolder  = "trajectory/"
	filesFolder   = "workspace/"
	digestName    = "SHA256"
	pieceOfEvents = 1 << 20 // bytes of events in one entry
)

// manifest describes the conversation. An import uses the title, the creation time and some of the settings.
type manifest struct {
	Format     string           `json:"format"`
	Version    int              `json:"version"`
	ID         string           `json:"id"`
	Title      string           `json:"title"`
	CreatedAt  time.Time        `json:"created_at"`
	UpdatedAt  time.Time        `json:"updated_at"`
	Repository string           `json:"repository,omitempty"`
	Branch     string           `json:"branch,omitempty"`
	Model      string           `json:"model,omitempty"`
	Events     int64            `json:"events"` // number of the last event
	Settings   exportedSettings `json:"settings,omitzero"`
}

// Workspaces is the part of the workspace keeper that this package uses.
type Workspaces interface {
	View(ctx context.Context, id session.ID) (*workspace.View, error)
	Use(ctx context.Context, id session.ID) (box *sandbox.Sandbox, release func(), err error)
	Room(ctx context.Context, id session.ID) (int64, error)
}

// Reader is implemented by query.Reader, which knows which events and values clients see.
type Reader interface {
	HiddenCalls(ctx context.Context, row session.Row) (map[int64]bool, error)
	Masked(ctx context.Context, owner string, event []byte) ([]byte, error)
}

// Service exports and imports conversations.
type Service struct {
	Conversations *conversation.Service
	Queries       Reader
	// Workspaces is nil if the server has no sandboxes.
	Workspaces Workspaces
	// Machine is the name of this machine if there are several, where the workspaces of imports are.
	Machine string
	// Dir is the folder with the records of imports in progress; "" keeps none.
	Dir    string
	Logger *slog.Logger

	mu      sync.Mutex
	busy    map[string]bool // users with an import in progress
	reading int             // imports whose events are read
	begun   map[session.ID]bool
	// converting is held while events are converted, which needs much memory.
	converting sync.Mutex
}

// Export writes a conversation to w, with its current workspace. Secrets in events are masked as they are for clients. If it
// fails after the first byte, the file is incomplete and Import refuses it. A conversation that exceeds the limits of an import is refused before the first byte.
func (s *Service) Export(ctx context.Context, row session.Row, w io.Writer) error {
	hidden, err := s.Queries.HiddenCalls(ctx, row)
	if err != nil {
		return err
	}
	var view *workspace.View
	if s.Workspaces != nil {
		if view, err = s.Workspaces.View(ctx, row.ID); err == nil {
			defer view.Close()
		} else if !errors.Is(err, workspace.ErrNone) {
			return err
		}
	}
	m := manifest{Format: format, Version: version, ID: string(row.ID), Title: row.Title, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		Repository: row.Repository, Branch: row.Branch, Model: row.Totals.Model, Events: row.Last}
	if m.Settings, err = s.settingsOf(ctx, row); err != nil {
		return err
	}
	about, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = s.measure(ctx, row, hidden, about, view)
	}
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(w)
	a := &writer{tar: tar.NewWriter(zip), sum: sha256.New()}
	err = a.file(manifestName, about)
	if err == nil {
		err = s.exportEvents(ctx, row, hidden, a)
	}
	if err == nil && view != nil {
		err = exportFiles(ctx, view, a)
	}
	if err == nil {
		err = a.file(digestName, []byte(hex.EncodeToString(a.sum.Sum(nil))+"\n"))
	}
	return errors.Join(err, a.tar.Close(), zip.Close())
}

func (s *Service) exportEvents(ctx context.Context, row session.Row, hidden map[int64]bool, a *writer) error {
	var piece bytes.Buffer
	n := 0
	flush := func() error {
		n++
		err := a.file(fmt.Sprintf("%s%06d.jsonl", eventsFolder, n), piece.Bytes())
		piece.Reset()
		return err
	}
	for e, err := range s.Conversations.Log.Read(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if e.Number > row.Last {
			break
		}
		if hidden[e.Number] {
			continue
		}
		event, err := v0.Export(row.ID, e)
		if err == nil && event != nil {
			event, err = s.Queries.Masked(ctx, row.Owner, event)
		}
		if err != nil {
			return err
		}
		if event == nil {
			continue
		}
		piece.Write(event)
		piece.WriteByte('\n')
		if err := errors.Join(a.event(event), a.eventsOf(int64(len(event)+1))); err != nil {
			return err
		}
		if piece.Len() >= pieceOfEvents {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// exportFiles adds the files of a workspace.
func exportFiles(ctx context.Context, view *workspace.View, a *writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		in.CloseWithError(view.Archive(ctx, sandbox.Tar, in))
	}()
	defer func() {
		stop()
		out.Close()
		<-done
	}()
	from := tar.NewReader(out)
	for {
		h, err := from.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(h.Name, "./")
		if name == "" || name == "." {
			continue
		}
		if err := a.add(&tar.Header{Typeflag: h.Typeflag, Name: filesFolder + name, Linkname: h.Linkname, Mode: h.Mode & 0o777, Size: h.Size}, from); err != nil {
			return err
		}
	}
}

// measure returns a refusal for a conversation that exceeds the limits of an import.
func (s *Service) measure(ctx context.Context, row session.Row, hidden map[int64]bool, about []byte, view *workspace.View) error {
	a := &writer{tar: tar.NewWriter(io.Discard), sum: sha256.New()}
	err := errors.Join(a.file(manifestName, about), s.exportEvents(ctx, row, hidden, a))
	advice := " Move the whole server with a backup instead."
	if err == nil && view != nil {
		err = a.countFiles(ctx, view, "")
		advice = " Delete files that can be downloaded again, such as node_modules, then export it again."
	}
	var refused *BadFile
	if errors.As(err, &refused) {
		return &conversation.Refusal{Kind: conversation.Conflict, Code: api.CodeConversationRefused, Text: "The conversation is too large to be exported: " + refused.Reason + "." + advice}
	}
	return err
}

// countFiles counts the files below a folder. It skips files that cannot be read, as the archive does.
func (a *writer) countFiles(ctx context.Context, view *workspace.View, dir string) error {
	files, err := view.List(ctx, path.Join(".", dir))
	if err != nil {
		return ctx.Err()
	}
	for _, f := range files {
		name := path.Join(dir, string(f.Name))
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filesFolder + name, Linkname: string(f.Link), Size: f.Size}
		switch f.Mode.Type() {
		case fs.ModeDir:
			h.Typeflag, h.Size = tar.TypeDir, 0
		case fs.ModeSymlink:
			h.Typeflag, h.Size = tar.TypeSymlink, 0
		case 0:
		default:
			continue
		}
		err := a.entry(h)
		if err == nil && f.IsDir() {
			err = a.countFiles(ctx, view, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writer writes an archive and computes its digest.
type writer struct {
	size
	tar *tar.Writer
	sum hash.Hash
}

func (a *writer) file(name string, content []byte) error {
	return a.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}, bytes.NewReader(content))
}

func (a *writer) add(h *tar.Header, content io.Reader) error {
	if err := a.entry(h); err != nil {
		return err
	}
	return a.put(h, content)
}

// put is add without checking limits.
func (a *writer) put(h *tar.Header, content io.Reader) error {
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	describe(a.sum, h)
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(io.MultiWriter(a.tar, a.sum), content)
	return err
}

// describe adds the header of an entry to a digest. The content is added by the caller.
func describe(sum hash.Hash, h *tar.Header) {
	fmt.Fprintf(sum, "%q %c %o %q %d\n", h.Name, h.Typeflag, h.Mode&0o777, h.Linkname, h.Size)
}
