// Package folder finds the sessions that belong to folders of this machine. Each folder that
// deckhand was started in has a home: a data directory of its own, with its own database, lock and
// control socket, so that sessions in different folders never wait for each other.
package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/cli/track"
	"deckhand/internal/control"
	"deckhand/internal/datadir"
	"deckhand/internal/session"
)

// Owner is the user that the sessions of a folder belong to.
const Owner = "admin"

// Workdir returns the folder to work in, or below which to clone.
func Workdir(dir string) (string, error) {
	typed := dir
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", cli.Usagef("--dir: the folder %s does not exist", typed)
	case err != nil:
		return "", cli.Usagef("--dir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", cli.Usagef("--dir: %s is not a folder", dir)
	}
	return dir, nil
}

// Home is the data directory of a folder.
type Home struct{ Dir, Folder string }

// parent is the directory of all homes, in the data directory of the user; pathName is the file in
// a home that holds the path of its folder.
const parent, pathName = "folders", "folder"

// Of returns the home of a folder, which must be an absolute path without links. Nothing is created.
func Of(dataDir, folder string) Home {
	sum := sha256.Sum256([]byte(folder))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, filepath.Base(folder))
	return Home{Dir: filepath.Join(dataDir, parent, name[:min(len(name), 40)]+"-"+hex.EncodeToString(sum[:6])), Folder: folder}
}

// Create creates the home.
func (h Home) Create() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.Dir, pathName), []byte(h.Folder+"\n"), 0o600)
}

// Lock keeps other processes away from a data directory that may be the home of a folder.
func Lock(dir, folder string) (unlock func(), err error) {
	unlock, err = datadir.Lock(dir)
	if errors.As(err, new(datadir.InUseError)) && folder != "" {
		err = fmt.Errorf("a task or a session is running in the folder %s: wait until it ends, or run the task without --keep", folder)
	}
	return unlock, err
}

// All returns the homes that exist, most recently used first.
func All(dataDir string) []Home {
	type used struct {
		Home
		at time.Time
	}
	var all []used
	files, _ := filepath.Glob(filepath.Join(dataDir, parent, "*", pathName)) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // removed since
		}
		u := used{Home: Home{Dir: filepath.Dir(file), Folder: strings.TrimSuffix(string(text), "\n")}}
		for _, name := range []string{"deckhand.db", "deckhand.db-wal"} {
			if info, err := os.Stat(filepath.Join(u.Dir, name)); err == nil && info.ModTime().After(u.at) {
				u.at = info.ModTime()
			}
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b used) int { return b.at.Compare(a.at) })
	out := make([]Home, len(all))
	for i, u := range all {
		out[i] = u.Home
	}
	return out
}

// address is that of the process that serves the home, or an error if none does.
func (h Home) address() (string, error) {
	answer, err := control.Ask(h.Dir, control.Address)
	if err != nil {
		return "", err
	}
	base, _, ok := strings.Cut(answer, " ")
	if !ok || base == "" {
		return "", errors.New("the process did not report its address")
	}
	return base, nil
}

// Client returns a client of the process that serves the home, or an error if none does.
func (h Home) Client() (*client.Client, error) {
	base, err := h.address()
	if err != nil {
		return nil, err
	}
	key, err := h.Key()
	if err != nil {
		return nil, err
	}
	return client.New(base, key), nil
}

// Key is the key of the home's own server.
func (h Home) Key() (string, error) { return access.ReadKeyFile(filepath.Join(h.Dir, "admin.key")) }

// Reader lists sessions.
type Reader struct {
	// Stored reads the conversations in the database of a home that no process serves.
	Stored func(ctx context.Context, dir string) ([]api.Conversation, error)
}

// List returns the sessions of all folders, most recently used first, and stops after the folder with
// which there are enough. A home that cannot be read is left out: its own folder reports the problem.
func (r *Reader) List(ctx context.Context, dataDir string, enough int) []cli.Session {
	var out []cli.Session
	for _, h := range All(dataDir) {
		for _, c := range r.of(ctx, h) {
			out = append(out, cli.Session{Conversation: c, Folder: h.Folder})
		}
		if len(out) >= enough {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b cli.Session) int { return b.LastUpdatedAt.Compare(a.LastUpdatedAt) })
	return out
}

// most is the number of sessions that are read of a home.
const most = 100

func (r *Reader) of(ctx context.Context, h Home) []api.Conversation {
	if c, err := h.Client(); err == nil {
		page, err := c.Conversations(ctx, url.Values{"limit": {strconv.Itoa(most)}})
		if err == nil {
			return page.Results
		}
	}
	all, _ := r.Stored(ctx, h.Dir)
	busy := func(c api.Conversation) bool {
		return c.Status != "STOPPED" && (&track.Agent{State: session.AgentState(c.AgentState)}).Working()
	}
	if slices.ContainsFunc(all, busy) && !datadir.InUse(h.Dir) { // the process of these sessions died
		for i, c := range all {
			if busy(c) {
				all[i].Status = "STOPPED"
			}
		}
	}
	return all
}

// Check explains why a session cannot be continued in the folder of a home: there is none yet, or the one with this ID or prefix
// of it belongs to another folder. It returns nil if the home has it.
func (r *Reader) Check(ctx context.Context, dataDir string, h Home, id string) error {
	has := func(c api.Conversation) bool { return strings.HasPrefix(c.ConversationID, id) }
	own := r.of(ctx, h)
	switch {
	case slices.ContainsFunc(own, has):
		return nil
	case id == "":
		return cli.Usagef("there is no session in this folder yet; start one with deckhand")
	}
	for _, other := range All(dataDir) {
		if other.Dir != h.Dir && slices.ContainsFunc(r.of(ctx, other), has) {
			return cli.Usagef("session %s belongs to the folder %s; open it with: deckhand --dir %s --resume %s", id, other.Folder, quoted(other.Folder), id)
		}
	}
	if len(own) >= most { // it may be an older one
		return nil
	}
	return fmt.Errorf("session %s not found; list sessions with deckhand list", id)
}

// quoted returns a path as a shell reads it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// Newest is the session that was used last, of a list that an API or a store returned.
func Newest(all []api.Conversation) (api.Conversation, bool) {
	if len(all) == 0 {
		return api.Conversation{}, false
	}
	return slices.MaxFunc(all, func(a, b api.Conversation) int { return a.LastUpdatedAt.Compare(b.LastUpdatedAt) }), true
}

// Last is the ID of the session of a home that was used last; "" if there is none.
func Last(ctx context.Context, index session.Index) (session.ID, error) {
	rows, err := index.Rows(ctx, session.Query{Owner: Owner, Limit: 100})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return slices.MaxFunc(rows, func(a, b session.Row) int { return a.UpdatedAt.Compare(b.UpdatedAt) }).ID, nil
}
