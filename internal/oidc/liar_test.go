package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	redirect = "http://localhost:3000/login/oidc/callback"
	client   = "deckhand"
	password = "client-secret-canary"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// liar is an identity provider that says what a test wants. That a good one is
// understood is tested against a real one, where the server is started.
type liar struct {
	t      *testing.T
	server *httptest.Server
	now    time.Time

	mu       sync.Mutex
	meta     map[string]any
	down     bool
	asked    int // for what it says of itself
	keys     []map[string]any
	idToken  func(nonce string) string
	userInfo map[string]any
	nonces   map[string]string // by code
	forms    []url.Values      // what was sent for a code
}

func newLiar(t *testing.T) *liar {
	l := &liar{t: t, now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), nonces: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked++
		if l.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(l.meta)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": l.keys})
	})
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer access-canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(l.userInfo)
	})
	mux.HandleFunc("POST /token", l.token)
	l.server = httptest.NewServer(mux)
	t.Cleanup(l.server.Close)
	at := l.server.URL
	l.meta = map[string]any{"issuer": at, "authorization_endpoint": at + "/auth", "token_endpoint": at + "/token", "jwks_uri": at + "/keys", "userinfo_endpoint": at + "/me",
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "EdDSA", "PS256", "none", "HS256"}}
	l.keys = []map[string]any{rsaJWK("one", &rsaKey().PublicKey)}
	l.idToken = func(nonce string) string { return l.sign("RS256", "one", l.claims(nonce)) }
	return l
}

// token gives an ID token for a code, once.
func (l *liar) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forms = append(l.forms, r.PostForm)
	nonce, ok := l.nonces[r.PostForm.Get("code")]
	delete(l.nonces, r.PostForm.Get("code"))
	w.Header().Set("Content-Type", "application/json")
	if user, pass, _ := r.BasicAuth(); !ok || user != client || pass != password {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"secret-of-the-provider"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "access-canary", "token_type": "Bearer", "id_token": l.idToken(nonce)})
}

func (l *liar) claims(nonce string) map[string]any {
	return map[string]any{"iss": l.server.URL, "sub": "1815", "aud": client, "exp": l.now.Add(time.Hour).Unix(), "iat": l.now.Unix(), "nonce": nonce, "preferred_username": "ada"}
}

func (l *liar) signOn(change ...func(*Config)) *SignOn {
	l.t.Helper()
	transport := &http.Transport{}
	l.t.Cleanup(transport.CloseIdleConnections)
	c := Config{Issuer: l.server.URL, ClientID: client, ClientSecret: password, Key: [32]byte{1}, Client: &http.Client{Transport: transport}, Now: func() time.Time { return l.now }}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// begin sends a browser away and gives what comes back with it.
func (l *liar) begin(s *SignOn) (flow string, answer url.Values, sent url.Values) {
	l.t.Helper()
	address, flow, err := s.Begin(l.t.Context(), redirect, "/conversations/c1")
	if err != nil {
		l.t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		l.t.Fatal(err)
	}
	sent = u.Query()
	l.mu.Lock()
	defer l.mu.Unlock()
	code := random()
	l.nonces[code] = sent.Get("nonce")
	return flow, url.Values{"code": {code}, "state": {sent.Get("state")}}, sent
}

func (l *liar) finish(s *SignOn) (Person, error) {
	l.t.Helper()
	flow, answer, _ := l.begin(s)
	p, _, err := s.Finish(l.t.Context(), flow, answer)
	if err != nil && (strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "access-canary") || strings.Contains(err.Error(), "secret-of-the-provider")) {
		l.t.Errorf("a secret stands in %q", err)
	}
	return p, err
}

func rsaJWK(id string, k *rsa.PublicKey) map[string]any {
	return map[string]any{"kty": "RSA", "kid": id, "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign makes a token. The key is the provider's own, whatever the header says.
func (l *liar) sign(algorithm, kid string, claims map[string]any) string {
	l.t.Helper()
	header, _ := json.Marshal(map[string]any{"alg": algorithm, "kid": kid})
	return l.signAs(string(header), rsaKey(), claims)
}

func (l *liar) signAs(header string, signer crypto.Signer, claims map[string]any) string {
	l.t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		l.t.Fatal(err)
	}
	text := b64([]byte(header)) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	var signature []byte
	switch k := signer.(type) {
	case *rsa.PrivateKey:
		if strings.Contains(header, "PS256") {
			signature, err = rsa.SignPSS(rand.Reader, k, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		} else {
			signature, err = rsa.SignPKCS1v15(nil, k, crypto.SHA256, sum[:])
		}
	case *ecdsa.PrivateKey:
		r, s, failure := ecdsa.Sign(rand.Reader, k, sum[:])
		signature, err = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), failure
	case ed25519.PrivateKey:
		signature = ed25519.Sign(k, []byte(text))
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return text + "." + b64(signature)
}

func with(m map[string]any, pairs ...any) map[string]any {
	out := maps.Clone(m)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name := pairs[i].(string); pairs[i+1] == nil {
			delete(out, name)
		} else {
			out[name] = pairs[i+1]
		}
	}
	return out
}
