package secret

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deckhand/internal/advice"
)

const (
	// EnvMaster is the environment variable with the master key.
	EnvMaster = "DECKHAND_MASTER_KEY"

	keySize  = 32
	keyFile  = "master.key"
	nextFile = "master.key.new" // a rotation in progress
	lockFile = "master.key.lock"
)

var (
	// ErrWrongMaster means that the data needs another master key.
	ErrWrongMaster = errors.New("the data was encrypted with another master key")
	// ErrNoMaster means that the data needs a master key, and that there is none.
	ErrNoMaster = errors.New("the file with the master key is missing")
	// ErrUnused means that nothing was encrypted yet, so that there is no master key.
	ErrUnused = errors.New("no master key is in use yet")
)

// restoreFix is the fix for a file that is missing or has another key.
const restoreFix = "restore the " + keyFile + " that belongs to this database (it should be backed up separately), or set " + EnvMaster + "; without it, stored secrets must be entered again"

// wrongMaster returns ErrWrongMaster with its fix.
func wrongMaster(fromEnv bool) error {
	if fromEnv {
		return advice.With(ErrWrongMaster, "set %s to the key that this database was encrypted with: 32 bytes as base64 or hex", EnvMaster)
	}
	return advice.With(ErrWrongMaster, restoreFix)
}

// Master is the key that wraps all data keys. It cannot be printed.
type Master struct {
	id   string
	key  *[keySize]byte
	aead cipher.AEAD
}

// ID returns an identifier that reveals nothing about the key.
func (m Master) ID() string { return m.id }

// Format writes the mask for every verb.
func (Master) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// MarshalJSON returns the mask.
func (Master) MarshalJSON() ([]byte, error) { return Secret{}.MarshalJSON() }

func newMaster(key []byte) (Master, error) {
	if len(key) != keySize {
		return Master{}, errors.New("the master key must be 32 bytes long")
	}
	aead, err := newAEAD(key)
	if err != nil {
		return Master{}, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("deckhand master id"))
	return Master{id: hex.EncodeToString(mac.Sum(nil)[:8]), key: (*[keySize]byte)(key), aead: aead}, nil
}

func randomMaster() (Master, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return newMaster(key)
}

// ParseMaster parses a master key of 32 bytes in base64 or hex. Its errors do not contain the text.
func ParseMaster(text string) (Master, error) {
	text = strings.TrimSpace(text)
	decoders := []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	}
	for _, decode := range decoders {
		if key, err := decode(text); err == nil && len(key) == keySize {
			return newMaster(key)
		}
	}
	return Master{}, errors.New("a master key must be 32 bytes as base64 or hex; create one with `openssl rand -base64 32`")
}

// CheckMaster checks the master key in the environment, which may be "".
func CheckMaster(env string) error {
	if env == "" {
		return nil
	}
	_, err := parseEnv(env)
	return err
}

func parseEnv(env string) (Master, error) {
	m, err := ParseMaster(env)
	if err != nil {
		return Master{}, fmt.Errorf("%s, or the systemd credential master-key: %w", EnvMaster, err)
	}
	return m, nil
}

// loadOrMake returns the master key in the file master.key, which it creates if it is missing. It needs the lock.
func loadOrMake(dataDir string) (Master, error) {
	m, err := readMaster(filepath.Join(dataDir, keyFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if m, err = randomMaster(); err != nil {
		return Master{}, err
	}
	if err := writeMaster(dataDir, keyFile, m); err != nil {
		if e := (*fs.PathError)(nil); errors.As(err, &e) { // which may name a temporary file
			err = e.Err
		}
		return Master{}, advice.With(fmt.Errorf("cannot create %s: %w", filepath.Join(dataDir, keyFile), err), "make the data directory writable, or set %s", EnvMaster)
	}
	return m, nil
}

func readMaster(path string) (Master, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		err = advice.With(err, "make the user of the server its owner: chown USER %s", path)
	}
	if err != nil {
		return Master{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Master{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Master{}, advice.With(fmt.Errorf("%s is readable by other users (mode %04o)", path, info.Mode().Perm()), "chmod 600 %s", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return Master{}, err
	}
	m, err := ParseMaster(string(text))
	if err != nil {
		return Master{}, advice.With(fmt.Errorf("%s does not contain a master key, which is 32 bytes as base64 or hex", path), restoreFix)
	}
	return m, nil
}

// writeMaster creates the file atomically and durably. The caller holds the lock, so that
// no one else can create the file between the check and the rename.
func writeMaster(dataDir, name string, m Master) error {
	path := filepath.Join(dataDir, name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s already exists", path), err)
	}
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(m.key[:]) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return rename(dataDir, filepath.Base(tmp), name)
}

// rename renames a file durably.
func rename(dir, from, to string) error {
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
