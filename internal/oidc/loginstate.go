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

// loginState is the state that the browser carries from the start of a login to its end. It is sealed, because the
// verifier and the nonce must not leak to someone who has the code.
type loginState struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Redirect string `json:"r"`
	Next     string `json:"x"`
	Until    int64  `json:"u"`
}

// purpose separates these sealed values from those of other features.
const purpose = "deckhand sign-on 1"

// maxSealed is the maximum length of a sealed value. Browsers store at most 4 kB in a
// cookie.
const maxSealed = 4096

func (s *SignOn) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.config.Key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *SignOn) seal(f loginState) (string, error) {
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

// open opens a sealed value. It returns ErrStale for anything that seal did not create
// within FlowLife.
func (s *SignOn) open(flow string) (f loginState, err error) {
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
		return loginState{}, ErrStale
	}
	return f, nil
}

// random returns 256 random bits as text.
func random() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
