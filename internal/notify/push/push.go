// Package push builds web push requests: a message encrypted for one browser (RFC 8291),
// signed so that push services can identify the sender (VAPID, RFC 8292). It
// does not send them.
package push

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// recordSize is the message size that push services accept, and maxText the longest text that fits.
	recordSize = 4096
	maxText    = 3000
	// tokenTime is the lifetime of a VAPID token; services accept at most 24 hours.
	tokenTime = 12 * time.Hour
)

// Keys identifies this server to push services. They must not change: browsers bind their
// subscriptions to the public key.
type Keys struct {
	signer *ecdsa.PrivateKey
	public []byte
}

// NewKeys derives the keys from a secret seed.
func NewKeys(seed []byte) (*Keys, error) {
	// Nearly all 32-byte values are valid keys of the curve; if one is not, the next number is tried.
	for n := range 8 {
		raw, err := hkdf.Key(sha256.New, seed, nil, "vapid key "+strconv.Itoa(n), 32)
		if err != nil {
			return nil, err
		}
		signer, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
		if err != nil {
			continue
		}
		public, err := signer.PublicKey.Bytes()
		return &Keys{signer, public}, err
	}
	return nil, errors.New("no valid key can be derived from the seed")
}

// Public returns the application server key that browsers subscribe with.
func (k *Keys) Public() string { return base64.RawURLEncoding.EncodeToString(k.public) }

// Subscription is what a browser returns when it subscribes. All of it is secret: its holder can
// send messages to the browser.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"`
	Auth     string `json:"auth"`
}

// CheckKeys returns the name of an invalid key, and why it is invalid.
func (s Subscription) CheckKeys() (field string, err error) {
	if _, err := s.publicKey(); err != nil {
		return "p256dh", errors.New("must be the browser's public key: an uncompressed P-256 point in base64url")
	}
	if auth, err := decode(s.Auth); err != nil || len(auth) != 16 {
		return "auth", errors.New("must be the browser's authentication secret: 16 bytes in base64url")
	}
	return "", nil
}

func (s Subscription) publicKey() (*ecdh.PublicKey, error) {
	b, err := decode(s.P256dh)
	if err != nil {
		return nil, err
	}
	return ecdh.P256().NewPublicKey(b)
}

// decode reads base64url, with or without padding.
func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(trimPadding(text))
}

func trimPadding(text string) string {
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	return text
}

// Message is a message to a browser.
type Message struct {
	Text []byte
	// Topic: the message replaces an undelivered one with the same topic.
	Topic string
	// Keep is the time for which the push service tries to deliver it.
	Keep   time.Duration
	Urgent bool
	// Subject is the contact of this server, as an https or mailto URL; "" for none.
	Subject string
}

// Request returns the request that sends m to a browser.
func (k *Keys) Request(ctx context.Context, s Subscription, m Message, now time.Time) (*http.Request, error) {
	body, err := encrypt(s, m.Text)
	if err != nil {
		return nil, err
	}
	token, err := k.token(s.Endpoint, m.Subject, now)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Authorization", "vapid t="+token+", k="+k.Public())
	h.Set("Content-Encoding", "aes128gcm")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("TTL", strconv.Itoa(int(m.Keep.Seconds())))
	h.Set("User-Agent", "deckhand")
	h.Set("Urgency", "normal")
	if m.Urgent {
		h.Set("Urgency", "high")
	}
	if m.Topic != "" {
		sum := sha256.Sum256([]byte(m.Topic)) // a topic has at most 32 characters of base64url
		h.Set("Topic", base64.RawURLEncoding.EncodeToString(sum[:24]))
	}
	return req, nil
}

// token returns the signed VAPID token for one push service.
func (k *Keys) token(endpoint, subject string, now time.Time) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub,omitempty"`
	}{u.Scheme + "://" + u.Host, now.Add(tokenTime).Unix(), subject})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.signer, sum[:])
	if err != nil {
		return "", err
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature[:]), nil
}

// encrypt encrypts a text for the browser.
func encrypt(s Subscription, text []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return seal(s, text, own, salt[:])
}

// seal implements RFC 8291 with the given key and salt.
func seal(s Subscription, text []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the text has %d bytes, more than the limit of %d", len(text), maxText)
	}
	theirs, err := s.publicKey()
	if err != nil {
		return nil, err
	}
	auth, err := decode(s.Auth)
	if err != nil {
		return nil, err
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	public := own.PublicKey().Bytes()
	input, err := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(theirs.Bytes())+string(public), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	head := binary.BigEndian.AppendUint32(bytes.Clone(salt), recordSize)
	head = append(append(head, byte(len(public))), public...)
	const last = 2 // the delimiter of the only record
	return gcm.Seal(head, nonce, append(bytes.Clone(text), last), nil), nil
}
