package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"deckhand/internal/secret/keylock"
)

// Rotate replaces the master key in the file by a new random one and rewraps all data
// keys. The new key is on disk before the first data key needs it, and the old one is
// kept until none does, so a crash at any point loses nothing: the next OpenKeyring uses
// the file that the data needs.
func (k *Keyring) Rotate(ctx context.Context) error {
	if k.dataDir == "" {
		return errors.New("the master key comes from " + EnvMaster + "; give the new key explicitly")
	}
	unlock, err := keylock.Lock(filepath.Join(k.dataDir, lockFile))
	if err != nil {
		return err
	}
	defer unlock()

	inForce, err := k.store.MasterID(ctx)
	if err != nil {
		return fmt.Errorf("reading the master key's id: %w", err)
	}
	old, name, err := findMaster(k.dataDir, inForce)
	if err != nil {
		return err
	}
	if name == nextFile {
		if err := rename(k.dataDir, nextFile, keyFile); err != nil {
			return err
		}
	}
	// A new key that is not in use was left by a rotation that failed before it
	// rewrapped anything. We hold the lock, so no one is about to use it.
	if err := os.Remove(filepath.Join(k.dataDir, nextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, err := randomMaster()
	if err != nil {
		return err
	}
	if err := writeMaster(k.dataDir, nextFile, next); err != nil {
		return err
	}
	if err := k.step("written"); err != nil {
		return err
	}
	// After an error it is unknown whether the transaction was committed, so both files
	// are kept.
	if err := k.rewrap(ctx, old, next); err != nil {
		return err
	}
	if err := k.step("rewrapped"); err != nil {
		return err
	}
	return rename(k.dataDir, nextFile, keyFile)
}

// RotateTo rewraps all data keys with newKey (base64 or hex), for a master key from the
// environment. The caller must store the new key first.
func (k *Keyring) RotateTo(ctx context.Context, newKey string) error {
	if k.dataDir != "" {
		return errors.New("the master key is in a file; rotate it without giving a new key")
	}
	next, err := ParseMaster(newKey)
	if err != nil {
		return err
	}
	return k.rewrap(ctx, k.current(), next)
}

func (k *Keyring) rewrap(ctx context.Context, old, next Master) error {
	err := k.store.Rewrap(ctx, old.id, next.id, func(d DataKey) (DataKey, error) {
		plain, _, err := unwrap(old, d.User, d)
		if err != nil {
			return DataKey{}, err
		}
		return wrap(next, d, plain), nil
	})
	if err != nil {
		return fmt.Errorf("rewrapping the data keys: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.master = next
	return nil
}
