package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"time"
)

// journey is what a browser carries from the beginning of a sign-on to its end. It is sealed, because the verifier
// and the nonce are worth something to who gets hold of a code.
type journey struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Redirect string `json:"r"`
	Next     string `json:"x"`
	Until    int64  `json:"u"`
}

// purpose keeps what was sealed for something else from being taken for a journey.
const purpose = "deckhand sign-on 1"

// maxSealed bounds what is opened; browsers carry 4 kB in a cookie at most.
const maxSealed = 4096

func (s *SignOn) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.config.Key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *SignOn) seal(f journey) (string, error) {
	aead, err := s.aead()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, []byte(purpose))), nil
}

// open is ErrStale for whatever seal did not make within FlowLife.
func (s *SignOn) open(flow string) (f journey, err error) {
	aead, err := s.aead()
	if err != nil {
		return f, err
	}
	if len(flow) > maxSealed {
		return f, ErrStale
	}
	sealed, err := base64.RawURLEncoding.DecodeString(flow)
	if err != nil {
		return f, ErrStale
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(purpose))
	if err != nil || json.Unmarshal(plain, &f) != nil || s.config.Now().After(time.Unix(f.Until, 0)) {
		return journey{}, ErrStale
	}
	return f, nil
}

// random is 256 bits as text.
func random() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
