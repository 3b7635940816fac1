// Package pushtest is a browser with its push service for tests: it checks who sends a message and
// decrypts it as RFC 8291 and RFC 8292 say, with code that shares nothing with package push.
package pushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Message is what arrived.
type Message struct {
	Title, Body, Path, Tag string
	Header                 http.Header
}

// Browser is a subscribed browser.
type Browser struct {
	// Got has what arrived, and Errors what was wrong with messages that were refused.
	Got    chan Message
	Errors chan error
	// Before is called when a message has arrived, before it is answered; it may be nil.
	Before func(Message)
	// Status is what the push service answers with; 0 for 201.
	Status atomic.Int64

	endpoint string
	key      *ecdh.PrivateKey
	auth     [16]byte
	server   *httptest.Server
	// PublicKey is the application server key that was subscribed with.
	PublicKey string
}

// New starts a push service on this machine with one browser. Both end with the test.
func New(t testing.TB, publicKey string) *Browser {
	t.Helper()
	b := &Browser{Got: make(chan Message, 100), Errors: make(chan error, 100), PublicKey: publicKey}
	var err error
	if b.key, err = ecdh.P256().GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	_, _ = rand.Read(b.auth[:])
	b.server = httptest.NewServer(b)
	b.endpoint = b.server.URL + "/push/" + rand.Text()
	t.Cleanup(b.server.Close)
	return b
}

// Endpoint is the address of the browser at its push service.
func (b *Browser) Endpoint() string { return b.endpoint }

// P256dh is the browser's public key.
func (b *Browser) P256dh() string { return encode(b.key.PublicKey().Bytes()) }

// Auth is the browser's secret.
func (b *Browser) Auth() string { return encode(b.auth[:]) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// ServeHTTP is the push service.
func (b *Browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := b.read(r, body)
	if err != nil {
		b.Errors <- err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if b.Before != nil {
		b.Before(m)
	}
	status := int(b.Status.Load())
	if status == 0 {
		status = http.StatusCreated
	}
	b.Got <- m
	w.WriteHeader(status)
}

func (b *Browser) read(r *http.Request, body []byte) (Message, error) {
	if err := b.checkSender(r); err != nil {
		return Message{}, err
	}
	if ttl := r.Header.Get("TTL"); ttl == "" || r.Header.Get("Content-Encoding") != "aes128gcm" || r.Method != http.MethodPost {
		return Message{}, fmt.Errorf("%s with headers %v", r.Method, r.Header)
	}
	text, err := b.decrypt(body)
	if err != nil {
		return Message{}, err
	}
	m := Message{Header: r.Header}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	m.Header = r.Header
	return m, nil
}

// checkSender verifies the VAPID token.
func (b *Browser) checkSender(r *http.Request) error {
	token, key, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "vapid t="), ", k=")
	parts := strings.Split(token, ".")
	if !ok || key != b.PublicKey || len(parts) != 3 {
		return fmt.Errorf("the sender is %q", r.Header.Get("Authorization"))
	}
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 {
		return errors.New("the signature cannot be read")
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return errors.New("the signature is wrong")
	}
	var claims struct {
		Aud string
		Exp int64
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if left := time.Until(time.Unix(claims.Exp, 0)); err != nil || claims.Aud != b.server.URL || left <= 0 || left > 24*time.Hour {
		return fmt.Errorf("the claims are %s: %v", text, err)
	}
	return nil
}

func mac(key []byte, texts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, t := range texts {
		h.Write(t)
	}
	return h.Sum(nil)
}

// decrypt follows section 3.4 of RFC 8291 step by step.
func (b *Browser) decrypt(body []byte) ([]byte, error) {
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		return nil, errors.New("the message is too short")
	}
	salt, size, sender, text := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:21+int(body[20])], body[21+int(body[20]):]
	if len(text) > int(size) {
		return nil, errors.New("the message has more than one record")
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	input := mac(mac(b.auth[:], shared), []byte("WebPush: info\x00"), b.key.PublicKey().Bytes(), sender, []byte{1})
	prk := mac(salt, input)
	key := mac(prk, []byte("Content-Encoding: aes128gcm\x00\x01"))[:16]
	nonce := mac(prk, []byte("Content-Encoding: nonce\x00\x01"))[:12]
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, text, nil)
	if err != nil || len(plain) == 0 {
		return nil, fmt.Errorf("the message cannot be decrypted: %w", err)
	}
	if plain[len(plain)-1] != 2 {
		return nil, errors.New("the record is not the last")
	}
	return plain[:len(plain)-1], nil
}
