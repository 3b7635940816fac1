package nats

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// Seal encrypts what members tell each other: a NATS server may be shared, and who else uses it can publish and subscribe to any
// subject unless its accounts forbid that. Messages can be lost and repeated, but neither read nor forged.
type Seal struct{ aead cipher.AEAD }

// NewSeal makes a Seal of a key that all members have.
func NewSeal(key [32]byte) (s Seal, err error) {
	own, err := hkdf.Key(sha256.New, key[:], nil, "messages between servers", 32)
	if err != nil {
		return s, err
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return s, err
	}
	s.aead, err = cipher.NewGCMWithRandomNonce(block)
	return s, err
}

// Seal encrypts a message for a subject.
func (s Seal) Seal(subject string, plain []byte) []byte {
	return s.aead.Seal(nil, nil, plain, []byte(subject))
}

// Open decrypts a message. False means that no member has sealed it for this subject.
func (s Seal) Open(subject string, sealed []byte) ([]byte, bool) {
	plain, err := s.aead.Open(nil, nil, sealed, []byte(subject))
	return plain, err == nil
}
