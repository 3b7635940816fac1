package results

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// KeySize is how long a key is, in bytes.
const KeySize = 32

// maxKeys bounds how many keys are remembered.
const maxKeys = 4

// errSealed says that a result was sealed under a key that is not known.
var errSealed = errors.New("the result is sealed under another key")

// SetKey says under which key results are sealed from now on. Those that were sealed
// under the same key before, by another runner, can be read from now on.
func (s *Store) SetKey(key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Equal(key, s.key) {
		return nil
	}
	if err := s.addKey(key); err != nil {
		return err
	}
	s.key = bytes.Clone(key)
	for _, r := range s.known {
		if r.plain {
			return s.compact()
		}
	}
	return nil
}

func (s *Store) addKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("a key has %d bytes", KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	s.keys = append(s.keys, c)
	s.keys = s.keys[max(len(s.keys)-maxKeys, 0):]
	return nil
}

// seal encrypts a result.
func (s *Store) seal(id string, result []byte) []byte {
	c := s.keys[len(s.keys)-1]
	nonce := make([]byte, c.NonceSize(), c.NonceSize()+len(result)+c.Overhead())
	_, _ = rand.Read(nonce)
	return c.Seal(nonce, nonce, result, []byte(id))
}

func (s *Store) open(id string, sealed []byte) (json.RawMessage, error) {
	for i := len(s.keys) - 1; i >= 0; i-- {
		n := s.keys[i].NonceSize()
		if len(sealed) < n {
			break
		}
		if b, err := s.keys[i].Open(nil, sealed[:n], sealed[n:], []byte(id)); err == nil {
			return b, nil
		}
	}
	return nil, errSealed
}

// resealed is a line with its result sealed.
func (s *Store) resealed(id string, b []byte) ([]byte, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, err
	}
	l.Sealed, l.Result = s.seal(id, l.Result), nil
	b, err := json.Marshal(l)
	return append(b, '\n'), err
}

// SealFile encrypts something under the key that SetKey was given, for a file. It fails
// without one: only this runner could read it.
func (s *Store) SealFile(name string, b []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		return nil, errors.New("the runner has no key")
	}
	return s.seal(name, b), nil
}

// OpenFile decrypts what SealFile encrypted.
func (s *Store) OpenFile(name string, sealed []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(name, sealed)
}

// Sync makes all records safe on disk.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Sync()
}
