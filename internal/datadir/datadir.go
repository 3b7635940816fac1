// Package datadir looks after a server's data directory: the lock that keeps a
// second server away, the workspaces that belong to its database, and the keys
// and the name that a server keeps from start to start.
package datadir

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"deckhand/internal/advice"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// Restoring is a file in a data directory while a backup is restored to it.
const Restoring = ".restoring"

// lockTime is how long Lock waits for a lock.
const lockTime = time.Second

// InUseError says that another process has locked a data directory.
type InUseError struct{ Dir string }

func (e InUseError) Error() string {
	return fmt.Sprintf("another deckhand process uses %s; stop it first, or choose another --data-dir", e.Dir)
}

// Lock keeps a second server away from the same data. It fails for a data directory that is not completely restored: a server would
// begin with an empty database there.
func Lock(dir string) (unlock func(), err error) {
	if _, err := os.Lstat(filepath.Join(dir, Restoring)); err == nil {
		return nil, fmt.Errorf("a backup is being restored to %s, or was not restored completely: run deckhand restore again", dir)
	}
	f, err := os.OpenFile(filepath.Join(dir, "server.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, syscall.EROFS) {
		return func() {}, nil // a read-only file system: no other process can write there either
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the data directory: %w", err)
	}
	locked := func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	// A process that a killed server was just starting has a copy of the file and keeps the lock a little longer.
	for begin := time.Now(); locked() != nil; time.Sleep(lockTime / 100) {
		if time.Since(begin) < lockTime {
			continue
		}
		f.Close()
		return nil, InUseError{dir}
	}
	return func() {
		// A process that is just being started has a copy of the file and would keep the lock a little longer.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		f.Close()
	}, nil
}

// InUse reports whether a process has locked a data directory. It changes nothing there.
func InUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "server.lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return true
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return false
}

// NameFile is the file in a data directory with the name of its server.
const NameFile = "server.name"

// InstanceFile is the file in the folder of workspaces with the Instance of their database.
const InstanceFile = ".database"

// Name returns the name of the server with this data directory. The first call creates it.
func Name(dir string) (string, error) {
	file := filepath.Join(dir, NameFile)
	known, err := os.ReadFile(file)
	if err == nil && len(known) > 0 {
		return string(known), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("cannot use the data directory: %w", err)
	}
	name := rand.Text()
	if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
		return "", fmt.Errorf("cannot use the data directory: %w", err)
	}
	return name, nil
}

// ClaimWorkspaces makes sure that the workspaces belong to this database: with another one they
// would look unused and be removed.
func ClaimWorkspaces(dir, instance string) error {
	if known, err := workspaceOwner(dir, instance); err != nil || known {
		return err
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, InstanceFile), []byte(instance), 0o600)
	}
	if errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// CheckWorkspaces returns the error of ClaimWorkspaces if the workspaces belong to another database. It writes nothing. The instance is
// empty if there is no database.
func CheckWorkspaces(dir, instance string) error {
	_, err := workspaceOwner(dir, instance)
	return err
}

// workspaceOwner reports whether the workspaces belong to a database, and returns an error if it is not this one.
func workspaceOwner(dir, instance string) (known bool, err error) {
	owner, err := os.ReadFile(filepath.Join(dir, InstanceFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil && string(owner) != instance {
		err = advice.With(fmt.Errorf("the workspaces in %s belong to another database", dir),
			"use that database, restore it from a backup, or use another --data-dir; to start with empty workspaces: mv %s %s.old", dir, dir)
	}
	return true, err
}

// Meta stores small values under names.
type Meta interface {
	// Meta is the value, nil if there is none.
	Meta(ctx context.Context, name string) ([]byte, error)
	// SetMetaOnce stores a value unless there is one, and returns that which is stored.
	SetMetaOnce(ctx context.Context, name string, value []byte) ([]byte, error)
	// ReadOnly says that nothing can be stored.
	ReadOnly() bool
}

// Instance is a name for this data, by which its containers are known.
func Instance(ctx context.Context, db Meta) (string, error) {
	known, err := db.Meta(ctx, "instance")
	if err != nil || known != nil || db.ReadOnly() {
		return string(known), err
	}
	var b [8]byte
	_, _ = rand.Read(b[:])
	known, err = db.SetMetaOnce(ctx, "instance", []byte(hex.EncodeToString(b[:])))
	return string(known), err
}

// Key is a random key that is made once and kept sealed under a name. Where nothing can be stored, it lasts as long as
// this process.
func Key(ctx context.Context, db Meta, keyring *secret.Keyring, name, field string) (key [32]byte, err error) {
	const owner = "deckhand server"
	if db.ReadOnly() {
		_, _ = rand.Read(key[:])
		return key, nil
	}
	sealed, err := db.Meta(ctx, name)
	if err != nil {
		return key, err
	}
	if sealed == nil {
		_, _ = rand.Read(key[:])
		if sealed, err = keyring.Seal(ctx, owner, field, key[:]); err != nil {
			return key, err
		}
		if sealed, err = db.SetMetaOnce(ctx, name, sealed); err != nil {
			return key, err
		}
	}
	plain, err := keyring.Open(ctx, owner, field, sealed)
	copy(key[:], plain)
	return key, err
}

// ChainStore is a database with a hash chain of events.
type ChainStore interface {
	Meta
	UseChain(key [32]byte, start int64)
	ChainStart(ctx context.Context) (int64, error)
}

// UseChain passes the key of the hash chain to the database. It creates the key once, and seals it together with the number
// of the last session that is older than the chain, so that a change of either is detected. A read-only database without a
// key has no chain.
func UseChain(ctx context.Context, db ChainStore, keyring *secret.Keyring) error {
	const name, owner, field = "chain_key", "deckhand server", "chain key"
	sealed, err := db.Meta(ctx, name)
	if err != nil || sealed == nil && db.ReadOnly() {
		return err
	}
	if sealed == nil {
		start, err := db.ChainStart(ctx)
		if err != nil {
			return err
		}
		var key [32]byte
		_, _ = rand.Read(key[:])
		if sealed, err = keyring.Seal(ctx, owner, field, binary.BigEndian.AppendUint64(key[:], uint64(start))); err != nil {
			return err
		}
		if sealed, err = db.SetMetaOnce(ctx, name, sealed); err != nil {
			return err
		}
	}
	plain, err := keyring.Open(ctx, owner, field, sealed)
	if err == nil && len(plain) != 40 {
		err = errors.New("it has the wrong length")
	}
	if err != nil {
		return fmt.Errorf("the key of the hash chain cannot be read: %w", err)
	}
	db.UseChain([32]byte(plain[:32]), int64(binary.BigEndian.Uint64(plain[32:])))
	return nil
}

// SandboxKeys gives each sandbox the key for what its runner writes down. It is the
// same after a restart, so that results which waited for us can be read.
func SandboxKeys(ctx context.Context, db Meta, keyring *secret.Keyring) (func(session.ID) []byte, error) {
	key, err := Key(ctx, db, keyring, "results_key", "results key")
	if err != nil {
		return nil, err
	}
	return func(id session.ID) []byte {
		h := hmac.New(sha256.New, key[:])
		h.Write([]byte(id))
		return h.Sum(nil)
	}, nil
}
