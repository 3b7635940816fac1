// Package push makes the requests of web push: a message that only one browser can read
// (RFC 8291), and the signature by which push services know the sender (VAPID, RFC 8292). It
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
	// recordSize is the size that push services accept for a message, and maxText what fits in it.
	recordSize = 4096
	maxText    = 3000
	// tokenTime is how long a VAPID token is valid; services accept at most 24 hours.
	tokenTime = 12 * time.Hour
)

// Keys identify this server at push services. They must not change: browsers bind their
// subscriptions to the public key.
type Keys struct {
	signer *ecdsa.PrivateKey
	public []byte
}

// NewKeys derives the keys from a secret seed.
func NewKeys(seed []byte) (*Keys, error) {
	// Nearly every 32 bytes are a key of the curve; the number finds the next for the others.
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

// Public is the application server key that browsers subscribe with.
func (k *Keys) Public() string { return base64.RawURLEncoding.EncodeToString(k.public) }

// Subscription is what a browser returns when it subscribes. All of it is secret: who has it can
// send to the browser.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"`
	Auth     string `json:"auth"`
}

// CheckKeys says which of the keys is wrong, and why.
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

// Message is what to send.
type Message struct {
	Text []byte
	// Topic replaces an earlier message of the same topic that the browser has not received yet.
	Topic string
	// Keep is how long the push service tries to deliver it.
	Keep   time.Duration
	Urgent bool
	// Subject is who runs this server, as an https or mailto URL; "" for none.
	Subject string
}

// Request makes the request that sends m to a browser.
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

// token is the signed statement of who sends, for one push service.
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

// encrypt makes a text readable for the browser alone.
func encrypt(s Subscription, text []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	return seal(s, text, own, salt[:])
}

// seal is RFC 8291 with the key and the salt of the message given.
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
