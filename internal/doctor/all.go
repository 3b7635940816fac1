package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deckhand/internal/advice"
	"deckhand/internal/datadir"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/store"
)

// Everything is the part of a database that the checks of stored data use.
type Everything interface {
	Database
	Store
	settings.Store
	datadir.ChainStore
	session.Ledger
	store.Audit
	// Owners returns the names of all users.
	Owners(ctx context.Context) ([]string, error)
}

// shown is the maximum number of problems of a kind that are listed.
const shown = 20

// boxes is the folder of workspaces in a data directory.
const boxes = "boxes"

// stored is the state of a verification of stored data.
type stored struct {
	*Report
	db     Everything
	dir    string
	repair bool
	// known are the names of workspaces that conversations have, or may have.
	known                            map[string]bool
	conversations, events, bad, lost int
	// machine is the name of this machine among the servers that share the database; workspaces without a machine are on first.
	machine, first string
	money          money
}

// Everything verifies the secrets of all users, all conversations and the workspaces. With repair, it repairs what it can.
func (r *Report) Everything(ctx context.Context, db Everything, dataDir string, repair bool) {
	if instance, err := db.Meta(ctx, "instance"); err == nil {
		if err := datadir.CheckWorkspaces(filepath.Join(dataDir, boxes), string(instance)); err != nil {
			r.Check("workspaces", "", err)
		}
	}
	keyring, unchecked, err := keyring(ctx, db, dataDir, r.MasterKey)
	switch r.unchecked = unchecked; {
	case errors.Is(err, secret.ErrUnused):
		r.Check("master key", "none yet: the server creates it", nil)
	case err != nil:
		r.unchecked = Unchecked{"the master key cannot be used", "as soon as the master key is in place, run: " + r.command()}
		r.Check("master key", "", advice.With(err, "check the database"))
	default:
		r.Check("master key", "can decrypt the stored secrets", nil)
		r.secrets(ctx, db, keyring)
	}
	r.conversations(ctx, db, dataDir, repair)
}

// conversations verifies all conversations, the ledger and workspaces, and the hash chains if the database has their key.
func (r *Report) conversations(ctx context.Context, db Everything, dataDir string, repair bool) {
	s := &stored{Report: r, db: db, dir: dataDir, repair: repair, known: map[string]bool{}}
	err := s.machines(ctx)
	for after, more := int64(0), true; more && err == nil; {
		var rows []session.Row
		rows, after, err = db.Sessions(ctx, after)
		more = len(rows) > 0
		for _, row := range rows {
			if err = ctx.Err(); err != nil {
				break
			}
			if !row.Deleted {
				s.one(ctx, row.ID)
			}
		}
	}
	if err != nil {
		r.Check("conversations", "", advice.With(err, "check the database"))
		return
	}
	all := "all valid"
	if s.conversations > 0 && r.unchecked.Why != "" {
		all, r.skipped = "all can be read", true
	}
	if s.bad == 0 {
		r.Check("conversations", fmt.Sprintf("%d with %d events, %s", s.conversations, s.events, all), nil)
	} else if s.bad > shown {
		r.Check("conversations", "", advice.With(fmt.Errorf("%d of %d are damaged", s.bad, s.conversations), "stop the server and run: %s", r.command("--repair")))
	}
	if r.skipped {
		r.Warn("hash chains", r.unchecked.String(), r.unchecked.Fix)
	}
	s.orphans(ctx)
	s.ledger(ctx)
	s.workspaces()
}

// machines reads the name of this machine, and the name of the first one.
func (s *stored) machines(ctx context.Context) error {
	name, err := os.ReadFile(filepath.Join(s.dir, datadir.NameFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	first, err := s.db.Meta(ctx, "first_machine")
	s.machine, s.first = string(name), string(first)
	return err
}

// orphans finds logs whose conversation is missing in the table of conversations. They cannot be continued, because only that table
// has the ID.
func (s *stored) orphans(ctx context.Context) {
	numbers, err := s.db.Orphans(ctx)
	if err != nil {
		s.Check("events", "", advice.With(err, "check the database"))
		return
	}
	for i, n := range numbers {
		v := Verification{ID: session.ID(fmt.Sprintf("number-%d", n)), DataDir: s.dir}
		switch {
		case i == shown:
			s.Check("events", "", advice.With(fmt.Errorf("%d conversations are missing, but their events still exist", len(numbers)), "restore a backup"))
			return
		case !s.repair:
			s.Check("events", "", advice.With(fmt.Errorf("conversation number %d is missing, but its events still exist", n), "restore a backup, or stop the server and run: %s", s.command("--repair")))
			continue
		}
		path, err := s.moveOrphan(ctx, v, n)
		if err != nil {
			s.Check("events", "", advice.With(err, "stop the server, and run the command again"))
			return
		}
		s.Warn("events", fmt.Sprintf("conversation number %d is missing; its events were moved to %s", n, path), "")
	}
}

// moveOrphan saves the events of an orphan to a file, as lines of JSON, and removes them.
func (s *stored) moveOrphan(ctx context.Context, v Verification, n int64) (path string, err error) {
	err = v.locked(func() error {
		events, err := s.db.OrphanEvents(ctx, n)
		var out bytes.Buffer
		for lines := json.NewEncoder(&out); len(events) > 0 && err == nil; events = events[1:] {
			err = lines.Encode(events[0])
		}
		if err == nil {
			path, err = v.save(out.Bytes())
		}
		if err == nil {
			err = s.db.RemoveOrphan(ctx, n)
		}
		return err
	})
	return path, err
}

// secrets checks that the settings of all users can be decrypted.
func (r *Report) secrets(ctx context.Context, db Everything, keyring *secret.Keyring) {
	service := settings.New(db, keyring, secret.NewRedactor())
	users, err := db.Owners(ctx)
	if err != nil {
		r.Check("secrets", "", advice.With(err, "check the database"))
		return
	}
	for _, u := range users {
		if _, err := service.Get(ctx, u); err != nil && !errors.Is(err, settings.ErrNotFound) {
			r.Check("secrets", "", advice.With(fmt.Errorf("the secrets of user %s cannot be decrypted: %w", u, err), "restore a backup, or have the user enter them again in Settings"))
			return
		}
	}
	detail := fmt.Sprintf("those of %d users can be decrypted", len(users))
	if len(users) == 1 {
		detail = "those of 1 user can be decrypted"
	}
	r.Check("secrets", detail, nil)
}

// one verifies a conversation, and repairs it if asked to.
func (s *stored) one(ctx context.Context, id session.ID) {
	s.conversations++
	s.known[string(id)] = true
	v := Verification{Store: s.money.watch(s.db), ID: id, DataDir: s.dir, Repair: s.repair, Out: s.Out, Flags: s.Flags, Unchecked: s.unchecked}
	st, damage, err := v.fold(ctx)
	if err == nil && damage != nil && s.repair {
		if err = v.Run(ctx); err == nil {
			s.Warn("conversation", string(id)+" was repaired, see above", "")
			st, damage, err = v.fold(ctx)
		}
	}
	s.events += int(st.Last)
	if err == nil {
		err = damage
	}
	if err != nil && ctx.Err() == nil {
		if now, e := s.db.Row(ctx, id); e == nil && now.Deleted { // while it was read
			return
		}
		s.money.unknown = true
		if s.bad++; s.bad <= shown {
			err = advice.With(err, "restore a backup, or stop the server and run: %s", s.command("--repair", string(id)))
			s.Check("conversation", "", fmt.Errorf("%s is valid up to event %d: %w", id, st.Last, err))
		}
		return
	}
	s.money.add(st)
	s.workspace(st)
}

// workspace checks that the local workspace of a conversation exists, unless it is on another machine.
func (s *stored) workspace(st session.State) {
	var h struct{ Driver, ID, Machine string }
	if json.Unmarshal(st.Handle, &h) != nil || h.ID == "" || !filepath.IsLocal(h.ID) {
		return
	}
	if p, ok := drivers.Find(h.Driver); !ok || p.Images { // the workspace is a volume of the engine
		return
	}
	s.known[h.ID] = true
	if at := cmp.Or(h.Machine, s.first); at != "" && at != s.machine {
		return
	}
	if _, err := os.Lstat(filepath.Join(s.dir, boxes, h.ID)); errors.Is(err, fs.ErrNotExist) {
		if s.lost++; s.lost <= shown {
			s.Warn("workspace", fmt.Sprintf("the workspace of conversation %s is missing; the conversation continues with an empty one", st.ID), "restore it from a backup: deckhand restore")
		}
	}
}

// workspaces reports folders that belong to no conversation. A server moves them aside when it starts.
func (s *stored) workspaces() {
	dir := filepath.Join(s.dir, boxes)
	names, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.Check("workspaces", "", advice.With(err, "make the user of the server its owner: chown -R USER %s", dir))
		}
		return
	}
	found, orphans := 0, 0
	for _, n := range names {
		if !n.IsDir() || strings.HasPrefix(n.Name(), ".") {
			continue
		}
		if found++; s.known[n.Name()] {
			continue
		}
		orphans++
		path := filepath.Join(dir, n.Name())
		if !s.repair {
			s.Warn("workspace", path+" belongs to no conversation", "the server moves it to "+filepath.Join(dir, ".set-aside")+" when it starts; or stop the server and run: "+s.command("--repair"))
		} else if err := s.setAside(dir, n.Name()); err != nil {
			s.Check("workspace", "", advice.With(err, "stop the server, and run the command again"))
		}
	}
	s.Check("workspaces", fmt.Sprintf("%d, of which %d belong to no conversation", found, orphans), nil)
}

// setAside moves a folder that belongs to no conversation to .set-aside.
func (s *stored) setAside(dir, name string) error {
	unlock, err := datadir.Lock(s.dir)
	if err != nil {
		return err
	}
	defer unlock()
	shelf := filepath.Join(dir, ".set-aside")
	if err := os.Mkdir(shelf, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to := filepath.Join(shelf, fmt.Sprintf("%s.%d", name, time.Now().UnixMilli()))
	if err := os.Rename(filepath.Join(dir, name), to); err != nil {
		return err
	}
	s.Warn("workspace", name+" belongs to no conversation and was moved to "+to, "")
	return nil
}
