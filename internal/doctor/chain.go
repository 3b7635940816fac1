package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"deckhand/internal/datadir"
	"deckhand/internal/secret"
)

// Unchecked says why the hash chains of a database cannot be checked, and what to do about it. Both are empty if they can be checked.
type Unchecked struct{ Why, Fix string }

func (u Unchecked) String() string {
	return "not checked, so a changed event would not be noticed: " + u.Why
}

// noChain is for databases without a key for hash chains. A server creates the key, so the database may be older, or the key was removed.
var noChain = Unchecked{"the database has no key for them", "start a server of this version on it; if one has used it before, the database was changed: restore a backup"}

// UseChain passes the key of the hash chain to a database, if the master key is available. command is the one to run when it is.
func UseChain(ctx context.Context, db Everything, dataDir, master, command string) (Unchecked, error) {
	_, unchecked, err := keyring(ctx, db, dataDir, master)
	switch {
	case errors.Is(err, secret.ErrNoMaster):
		fix := fmt.Sprintf("copy the master.key of the server to %s, or set %s, and run: %s", filepath.Join(dataDir, "master.key"), secret.EnvMaster, command)
		return Unchecked{"the master key is missing", fix}, nil
	case errors.Is(err, secret.ErrUnused):
		return unchecked, nil
	}
	return unchecked, err
}

// keyring opens the keyring of a database and passes the key of the hash chain to it. It writes nothing.
func keyring(ctx context.Context, db Everything, dataDir, master string) (*secret.Keyring, Unchecked, error) {
	keyring, err := secret.ReadKeyring(ctx, dataDir, master, db)
	if err != nil {
		return nil, noChain, err
	}
	u := &unwritten{ChainStore: db}
	if err := datadir.UseChain(ctx, u, keyring); err != nil || !u.used {
		return keyring, noChain, err
	}
	return keyring, Unchecked{}, nil
}

// unwritten is a database in which UseChain creates no key. used is true if the database has one.
type unwritten struct {
	datadir.ChainStore
	used bool
}

func (*unwritten) ReadOnly() bool { return true }

func (u *unwritten) UseChain(key [32]byte, start int64) {
	u.used = true
	u.ChainStore.UseChain(key, start)
}

// Restored verifies the database of a restored backup. The path is empty if the database is not a file.
func (r *Report) Restored(ctx context.Context, db Everything, dataDir, path string) error {
	unchecked, err := UseChain(ctx, db, dataDir, r.MasterKey, r.command())
	if err != nil {
		return err
	}
	r.unchecked = unchecked
	r.whole(ctx, db, path, func() { r.conversations(ctx, db, dataDir, false) })
	if err := r.Result(); err != nil {
		return errors.New("the backup was restored, but it contains damaged conversations; see above")
	}
	return nil
}
