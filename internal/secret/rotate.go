package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Rotate replaces the master key in the file by a new random one and rewraps all
// data keys. The new key is on disk before the first data key needs it and the old
// one stays until none does, so dying anywhere in between loses nothing: the next
// OpenKeyring takes whichever of the two files the store's data needs.
func (k *Keyring) Rotate(ctx context.Context) error {
	if k.dataDir == "" {
		return errors.New("the master key comes from " + EnvMaster + "; give the new key explicitly")
	}
	unlock, err := lock(filepath.Join(k.dataDir, lockFile))
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
	// A new key that is not in force was left by a rotation that died before it
	// rewrapped anything; we hold the lock, so nobody is about to use it.
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
	// After an error here we do not know whether it was committed: both files stay.
	if err := k.rewrap(ctx, old, next); err != nil {
		return err
	}
	if err := k.step("rewrapped"); err != nil {
		return err
	}
	return rename(k.dataDir, nextFile, keyFile)
}

// RotateTo rewraps all data keys with newKey (base64 or hex), for a master key that
// comes from the environment. The caller must keep the new key before calling.
func (k *Keyring) RotateTo(ctx context.Context, newKey string) error {
	if k.dataDir != "" {
		return errors.New("the master key comes from a file, whose new content is chosen here; do not give one")
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
