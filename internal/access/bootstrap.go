package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	firstUser = "admin"
	keyFile   = "admin.key"
)

var errTorn = errors.New("the key file is incomplete")

// Bootstrap makes user admin and one admin key on the first start, and leaves the key in <dataDir>/admin.key. made
// says that it did; keyPath is the file, or "" when there is none whose key is valid.
//
// The file is written before the store: a key that is only in the store could never be read again, while a key that
// is only in the file is stored at the next start.
func (g *Gate) Bootstrap(ctx context.Context, dataDir string) (keyPath string, made bool, err error) {
	g.changing.Lock()
	defer g.changing.Unlock()
	path := filepath.Join(dataDir, keyFile)
	plain, err := ReadKeyFile(path)
	switch {
	case err == nil:
		return g.adopt(ctx, path, plain)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errTorn):
		return "", false, err
	}
	users, listErr := g.store.Users(ctx)
	if listErr != nil {
		return "", false, fmt.Errorf("list users: %w", listErr)
	}
	if len(users) > 0 {
		return "", false, nil // the operator moved the file away, as the manual recommends
	}
	if errors.Is(err, errTorn) {
		// A crash cut the writing short, so the key cannot have been used.
		if err := os.Remove(path); err != nil {
			return "", false, fmt.Errorf("replace the unfinished key file: %w", err)
		}
	}
	plain = newKey()
	if err := writeKeyFile(dataDir, path, plain); err != nil {
		return "", false, fmt.Errorf("write the first key: %w", err)
	}
	return path, true, g.storeFirst(ctx, plain)
}

// adopt decides what a key in the file means. A store that never had an admin key has not finished its first start.
// Any other store that does not know the key belongs to another installation, and a leftover file must not grant
// access to it.
func (g *Gate) adopt(ctx context.Context, path, plain string) (string, bool, error) {
	key, err := g.store.KeyByHash(ctx, hashOf(plain))
	if err == nil {
		if _, err := g.identify(ctx, key); errors.Is(err, ErrUnauthorized) {
			return "", false, nil
		} else if err != nil {
			return "", false, err
		}
		return path, false, nil
	}
	if !errors.Is(err, ErrNotFound) {
		return "", false, fmt.Errorf("look up the first key: %w", err)
	}
	keys, err := g.store.Keys(ctx, "")
	if err != nil {
		return "", false, fmt.Errorf("list keys: %w", err)
	}
	for _, k := range keys {
		if k.Admin {
			return "", false, nil
		}
	}
	return path, true, g.storeFirst(ctx, plain)
}

func (g *Gate) storeFirst(ctx context.Context, plain string) error {
	owner, err := g.userOrNew(ctx, firstUser, true)
	if err != nil {
		return fmt.Errorf("store the first user: %w", err)
	}
	if !owner.Admin {
		return fmt.Errorf("user %q exists: %w", firstUser, ErrNotAdmin)
	}
	if _, err := g.storeKey(ctx, plain, Key{User: firstUser, Label: "first start", Admin: true}, 0); err != nil {
		return err
	}
	return g.changed(ctx)
}

// ReadKeyFile reads a key from a file that holds just that.
func ReadKeyFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return "", err
	}
	plain := strings.TrimSpace(string(content))
	switch {
	case wholeKey(plain):
		return plain, nil
	case len(plain) < keyLength && strings.HasPrefix(plain, keyPrefix[:min(len(plain), len(keyPrefix))]),
		strings.Trim(plain, "\x00") == "": // some file systems leave zeros after a crash
		return "", fmt.Errorf("%s: %w", path, errTorn)
	}
	return "", fmt.Errorf("%s does not contain a key; move the file away and start again", path)
}

// writeKeyFile makes the file durable before it returns: its content first, then its name.
func writeKeyFile(dir, path, plain string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(plain + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
