package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"deckhand/internal/advice"
	"deckhand/internal/secret/keylock"
)

var (
	// ErrNoDataKey means that a user has no data key yet.
	ErrNoDataKey = errors.New("the user has no data key")
	// ErrMasterChanged means that the current master key is not the one that the caller
	// used.
	ErrMasterChanged = errors.New("the master key was changed at the same time")
	// ErrTampered means that sealed bytes were not sealed for this user and field, or
	// were changed.
	ErrTampered = errors.New("the encrypted value is damaged, or belongs to another user or field")
)

// DataKey is a user's key, wrapped by the master key.
type DataKey struct {
	User      string
	ID        string // 16 hex digits
	MasterID  string
	Wrapped   []byte
	CreatedAt time.Time
}

// KeyStore keeps wrapped data keys and remembers which master key wraps them.
// Implementations pass keystoretest.
type KeyStore interface {
	// MasterID returns the ID of the master key that wraps all stored data keys; "" if nothing was ever
	// stored.
	MasterID(ctx context.Context) (string, error)
	// InitMaster stores id as the master ID if none is stored yet, and returns the current
	// one.
	InitMaster(ctx context.Context, id string) (string, error)
	// DataKey returns the user's data key, or ErrNoDataKey.
	DataKey(ctx context.Context, user string) (DataKey, error)
	// AddDataKey stores k if the user has none, and returns the current one.
	// ErrMasterChanged if k.MasterID is not the current master.
	AddDataKey(ctx context.Context, k DataKey) (DataKey, error)
	// Rewrap replaces every data key by fn of it, and the master ID by newID, in one
	// transaction; an error of fn rolls it back. ErrMasterChanged if the current ID is not
	// oldID.
	Rewrap(ctx context.Context, oldID, newID string, fn func(DataKey) (DataKey, error)) error
}

const (
	sealVersion = 1
	headerSize  = 1 + 8  // version, data key id
	maxCached   = 10_000 // users whose opened data keys stay in memory
)

// Keyring seals values at rest. Each user has a data key, which is stored wrapped by the
// master key; rotating the master key rewraps the data keys and changes no value. It is
// safe for concurrent use, also next to another process that rotates the key.
type Keyring struct {
	store   KeyStore
	dataDir string // "" when the master key came from the environment

	mu     sync.Mutex
	master Master
	cache  map[string]*openKey

	// step lets tests interrupt a rotation at a named point.
	step func(name string) error
}

// openKey is an unwrapped data key. It does not change when the master key is rotated.
type openKey struct {
	id   [8]byte
	aead cipher.AEAD
}

// OpenKeyring takes the master key from env, the value of DECKHAND_MASTER_KEY, or else from the file in dataDir, and checks that it belongs to the
// data in the store, else ErrWrongMaster. It completes an interrupted rotation.
func OpenKeyring(ctx context.Context, dataDir, env string, store KeyStore) (*Keyring, error) {
	k := &Keyring{store: store, cache: map[string]*openKey{}, step: func(string) error { return nil }}
	var err error
	if env != "" {
		k.master, err = parseEnv(env)
	} else {
		// No rotation may start until the key is known to be the current one.
		unlock, lockErr := keylock.Lock(filepath.Join(dataDir, lockFile))
		if lockErr != nil {
			return nil, lockErr
		}
		defer unlock()
		k.dataDir = dataDir
		k.master, err = openFile(ctx, dataDir, store)
	}
	if err != nil {
		return nil, err
	}
	inForce, err := store.MasterID(ctx)
	if err == nil && inForce == "" {
		inForce, err = store.InitMaster(ctx, k.master.id)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ID of the master key: %w", err)
	}
	if inForce != k.master.id {
		return nil, wrongMaster(env != "")
	}
	return k, nil
}

// ReadKeyring is OpenKeyring for commands that must not write: it creates neither a key nor a lock. ErrUnused if the store needs no key yet.
func ReadKeyring(ctx context.Context, dataDir, env string, store KeyStore) (*Keyring, error) {
	if err := CheckMaster(env); err != nil {
		return nil, err
	}
	inForce, err := store.MasterID(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the ID of the master key: %w", err)
	case inForce == "":
		return nil, ErrUnused
	case env != "":
		return OpenKeyring(ctx, dataDir, env, store)
	}
	k := &Keyring{store: store, dataDir: dataDir, cache: map[string]*openKey{}, step: func(string) error { return nil }}
	k.master, _, err = findMaster(dataDir, inForce)
	if now, e := store.MasterID(ctx); err != nil && e == nil && now != inForce { // it was rotated at the same time
		k.master, _, err = findMaster(dataDir, now)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// openFile finds the file with the current master key. The caller holds the lock.
func openFile(ctx context.Context, dataDir string, store KeyStore) (Master, error) {
	inForce, err := store.MasterID(ctx)
	if err != nil {
		return Master{}, fmt.Errorf("reading the ID of the master key: %w", err)
	}
	if inForce == "" {
		return loadOrMake(dataDir)
	}
	m, name, err := findMaster(dataDir, inForce)
	if err == nil && name == nextFile {
		err = rename(dataDir, nextFile, keyFile)
	}
	return m, err
}

// findMaster returns the master key with that ID and its file. It never creates one:
// existing data needs exactly this key.
func findMaster(dataDir, id string) (Master, string, error) {
	var problems []error
	other := false
	// Twice, because a rotation may rename the second file to the first in between.
	for range 2 {
		for _, name := range []string{keyFile, nextFile} {
			m, err := readMaster(filepath.Join(dataDir, name))
			if err == nil && m.id == id {
				return m, name, nil
			}
			other = other || err == nil
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, err)
			}
		}
	}
	switch {
	case len(problems) > 0:
		return Master{}, "", problems[0]
	case other:
		return Master{}, "", wrongMaster(false)
	}
	return Master{}, "", advice.With(fmt.Errorf("%w: %s", ErrNoMaster, filepath.Join(dataDir, keyFile)), restoreFix)
}

// Seal encrypts a value so that it opens only as this field of this user. It creates the
// user's data key on first use.
func (k *Keyring) Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error) {
	key, err := k.userKey(ctx, user, true)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, headerSize+len(plaintext)+key.aead.Overhead())
	out = append(out, sealVersion)
	out = append(out, key.id[:]...)
	return key.aead.Seal(out, nil, plaintext, valueContext(user, field)), nil
}

// Open returns the value that Seal was given, or ErrTampered.
func (k *Keyring) Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize || sealed[0] != sealVersion {
		return nil, ErrTampered
	}
	key, err := k.userKey(ctx, user, false)
	if err == nil && key.id != [8]byte(sealed[1:headerSize]) {
		// The user may have been deleted and created again by another process.
		k.Forget(user)
		key, err = k.userKey(ctx, user, false)
	}
	if errors.Is(err, ErrNoDataKey) || err == nil && key.id != [8]byte(sealed[1:headerSize]) {
		return nil, ErrTampered
	}
	if err != nil {
		return nil, err
	}
	plaintext, err := key.aead.Open(nil, nil, sealed[headerSize:], valueContext(user, field))
	if err != nil {
		return nil, ErrTampered
	}
	return plaintext, nil
}

// Forget removes a user's data key from memory, after it was removed from the store.
func (k *Keyring) Forget(user string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.cache, user)
}

// MasterID returns the ID of the master key in use.
func (k *Keyring) MasterID() string { return k.current().id }

func (k *Keyring) current() Master {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.master
}

func (k *Keyring) userKey(ctx context.Context, user string, create bool) (*openKey, error) {
	k.mu.Lock()
	key := k.cache[user]
	k.mu.Unlock()
	if key != nil {
		return key, nil
	}
	master := k.current()
	key, err := k.fetchKey(ctx, master, user, create)
	if errors.Is(err, ErrMasterChanged) {
		if master, err = k.reload(ctx); err == nil {
			key, err = k.fetchKey(ctx, master, user, create)
		}
		if errors.Is(err, ErrMasterChanged) {
			err = wrongMaster(k.dataDir == "")
		}
	}
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.cache) >= maxCached {
		for other := range k.cache { // any one: a wrong guess costs one read
			delete(k.cache, other)
			break
		}
	}
	k.cache[user] = key
	return key, nil
}

// fetchKey returns ErrMasterChanged if master does not wrap the user's key.
func (k *Keyring) fetchKey(ctx context.Context, master Master, user string, create bool) (*openKey, error) {
	stored, err := k.store.DataKey(ctx, user)
	if errors.Is(err, ErrNoDataKey) && create {
		stored, err = k.addKey(ctx, master, user)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a data key: %w", err)
	}
	plain, id, err := unwrap(master, user, stored)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(plain)
	if err != nil {
		return nil, err
	}
	return &openKey{id: id, aead: aead}, nil
}

// addKey returns the current key, which is another one if a concurrent caller was first.
func (k *Keyring) addKey(ctx context.Context, master Master, user string) (DataKey, error) {
	var plain [keySize]byte
	var id [8]byte
	_, _ = rand.Read(plain[:])
	_, _ = rand.Read(id[:])
	return k.store.AddDataKey(ctx, wrap(master, DataKey{User: user, ID: hex.EncodeToString(id[:]), CreatedAt: time.Now().UTC()}, plain[:]))
}

// reload reads the key file again after another process rotated it.
func (k *Keyring) reload(ctx context.Context) (Master, error) {
	if k.dataDir == "" {
		return Master{}, wrongMaster(true)
	}
	inForce, err := k.store.MasterID(ctx)
	if err != nil {
		return Master{}, fmt.Errorf("reading the ID of the master key: %w", err)
	}
	m, _, err := findMaster(k.dataDir, inForce)
	if err != nil {
		return Master{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.master = m
	return m, nil
}

func wrap(master Master, k DataKey, plain []byte) DataKey {
	k.MasterID = master.id
	k.Wrapped = master.aead.Seal(nil, nil, plain, wrapContext(k.User, k.ID))
	return k
}

func unwrap(master Master, user string, k DataKey) (plain []byte, id [8]byte, err error) {
	if k.MasterID != master.id {
		return nil, id, ErrMasterChanged
	}
	raw, err := hex.DecodeString(k.ID)
	if err != nil || len(raw) != len(id) {
		return nil, id, ErrTampered
	}
	plain, err = master.aead.Open(nil, nil, k.Wrapped, wrapContext(user, k.ID))
	if err != nil || len(plain) != keySize {
		return nil, id, ErrTampered
	}
	return plain, [8]byte(raw), nil
}

// wrapContext is unambiguous because an ID has a fixed length and no bar.
func wrapContext(user, id string) []byte { return []byte("data-key|" + user + "|" + id) }

// valueContext prefixes each part with its length, so that no two triples give the same bytes.
func valueContext(user, field string) []byte {
	var out []byte
	for _, part := range []string{"value", user, field} {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
