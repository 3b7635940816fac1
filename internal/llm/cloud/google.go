package cloud

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// ServiceAccount is a service account of Google Cloud.
type ServiceAccount struct {
	Project string
	email   string
	keyID   string
	tokens  string // URL
	key     *rsa.PrivateKey
	id      [32]byte // digest of the file
}

// googleTokens is the URL at which Google exchanges a signed claim for an access token.
const googleTokens = "https://oauth2.googleapis.com/token"

// ParseServiceAccount reads the JSON key file of a service account. It returns nil for a text that is not JSON, such as an
// access token.
func ParseServiceAccount(text string) (*ServiceAccount, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, nil
	}
	var file struct {
		Type     string `json:"type"`
		Project  string `json:"project_id"`
		KeyID    string `json:"private_key_id"`
		Key      string `json:"private_key"`
		Email    string `json:"client_email"`
		TokenURI string `json:"token_uri"`
	}
	if json.Unmarshal([]byte(text), &file) != nil {
		return nil, errors.New("the key file of the service account is not valid JSON")
	}
	if file.Type != "service_account" || file.Email == "" || file.Key == "" {
		return nil, errors.New("the JSON is not the key file of a service account: create a key of the type JSON for a service account in Google Cloud")
	}
	if name := unprintable("project_id", file.Project, "private_key_id", file.KeyID, "client_email", file.Email, "token_uri", file.TokenURI); name != "" {
		return nil, errors.New("the " + name + " in the key file of the service account contains line breaks or other control characters")
	}
	a := &ServiceAccount{Project: file.Project, email: file.Email, keyID: file.KeyID, tokens: file.TokenURI, id: sha256.Sum256([]byte(text))}
	if a.tokens == "" {
		a.tokens = googleTokens
	}
	if u, err := url.Parse(a.tokens); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the token_uri in the key file of the service account is not a URL")
	}
	block, _ := pem.Decode([]byte(file.Key))
	if block == nil {
		return nil, errors.New("the private_key in the key file of the service account is not in PEM format")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		a.key, _ = key.(*rsa.PrivateKey)
	} else if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		a.key = key
	}
	if a.key == nil {
		return nil, errors.New("the private_key in the key file of the service account is not an RSA key")
	}
	return a, nil
}

// Tokens keeps the tokens of service accounts until shortly before they expire. It is safe for concurrent use; nil keeps none.
type Tokens struct {
	mu  sync.Mutex
	all map[[32]byte]*token
}

// token is the token of an account. It is locked while it is renewed, so that concurrent calls renew it once.
type token struct {
	mu      sync.Mutex
	text    string
	expires time.Time
}

const (
	// maxTokens is how many accounts have a token in memory.
	maxTokens = 1000
	// early is how long before its expiry a token is renewed.
	early = 5 * time.Minute
	scope = "https://www.googleapis.com/auth/cloud-platform"
)

// of returns the cache entry for an account's token.
func (t *Tokens) of(a *ServiceAccount) *token {
	if t == nil {
		return &token{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || len(t.all) >= maxTokens {
		t.all = map[[32]byte]*token{}
	}
	if t.all[a.id] == nil {
		t.all[a.id] = &token{}
	}
	return t.all[a.id]
}

// Vertex returns a client that authorizes requests to Vertex AI: with a token of the account, or with an access token if
// there is no account.
func (t *Tokens) Vertex(client *http.Client, account *ServiceAccount, accessToken string) *http.Client {
	return with(client, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		bearer := accessToken
		var kept *token
		if account != nil {
			kept = t.of(account)
			var err error
			if bearer, err = kept.get(r.Context(), next, account); err != nil {
				return nil, err
			}
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		response, err := next.RoundTrip(r)
		if kept != nil && err == nil && response.StatusCode == http.StatusUnauthorized {
			kept.drop(bearer) // revoked before it expired
		}
		return response, err
	})
}

// get returns a token that is still valid for some time. It requests a new one from Google if needed.
func (k *token) get(ctx context.Context, next http.RoundTripper, a *ServiceAccount) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.text != "" && time.Until(k.expires) > early {
		return k.text, nil
	}
	claim, err := a.claim(time.Now())
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {claim}}.Encode()
	r, err := http.NewRequestWithContext(untraced{ctx}, http.MethodPost, a.tokens, strings.NewReader(form))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := next.RoundTrip(r)
	if err != nil {
		return "", fmt.Errorf("cannot get an access token for the service account: %w", err)
	}
	defer response.Body.Close()
	var said struct {
		Token       string `json:"access_token"`
		Seconds     int64  `json:"expires_in"`
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if json.Unmarshal(body, &said) != nil || response.StatusCode != http.StatusOK || said.Token == "" {
		return "", &TokenError{Status: response.StatusCode, Reason: strings.TrimSpace(said.Code + " " + said.Description)}
	}
	k.text, k.expires = said.Token, time.Now().Add(time.Duration(said.Seconds)*time.Second)
	return k.text, nil
}

// untraced is a context without values, so that observers of the model request do not observe the token request.
type untraced struct{ context.Context }

// Value implements context.Context.
func (untraced) Value(any) any { return nil }

// drop removes a token that was refused.
func (k *token) drop(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.text == text {
		k.text = ""
	}
}

// TokenError means that Google issued no token for a service account.
type TokenError struct {
	Status int
	Reason string
}

func (e *TokenError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("Google issued no access token for the service account (status %d): %s", e.Status, e.Reason))
}

// Refused reports whether Google rejected the account or its key, so that a retry cannot succeed.
func (e *TokenError) Refused() bool {
	return e.Status == http.StatusBadRequest || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// claim returns a signed JSON Web Token, which Google exchanges for an access token.
func (a *ServiceAccount) claim(now time.Time) (string, error) {
	encode := func(v any) string {
		b, _ := json.Marshal(v) // of texts and numbers
		return base64.RawURLEncoding.EncodeToString(b)
	}
	head := map[string]string{"alg": "RS256", "typ": "JWT"}
	if a.keyID != "" {
		head["kid"] = a.keyID
	}
	text := encode(head) + "." + encode(map[string]any{"iss": a.email, "scope": scope, "aud": a.tokens, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

var (
	locationInHost = regexp.MustCompile(`^(?:([a-z0-9-]+)-aiplatform|aiplatform\.([a-z]+)\.rep)\.googleapis\.com$`)
	projectInPath  = regexp.MustCompile(`/projects/([^/]+)/locations/([^/]+)`)
)

// Place is a project and location of Vertex AI.
type Place struct{ Server, Project, Location string }

// FindPlace reads the project and location from a base URL of Vertex AI. Defaults are the project of the account and the
// location global.
func FindPlace(u *url.URL, a *ServiceAccount) Place {
	p := Place{Server: u.Scheme + "://" + u.Host, Location: "global"}
	if a != nil {
		p.Project = a.Project
	}
	if m := locationInHost.FindStringSubmatch(strings.ToLower(u.Hostname())); m != nil {
		p.Location = m[1] + m[2]
	}
	if m := projectInPath.FindStringSubmatchIndex(u.Path); m != nil {
		p.Server += u.Path[:m[0]]
		for _, version := range []string{"/v1", "/v1beta1"} {
			p.Server = strings.TrimSuffix(p.Server, version)
		}
		p.Project, p.Location = u.Path[m[2]:m[3]], u.Path[m[4]:m[5]]
	} else {
		p.Server += strings.TrimRight(u.Path, "/")
	}
	return p
}

// At returns the URL of the place in a version of the API.
func (p Place) At(version string) string {
	return p.Server + "/" + version + "/projects/" + url.PathEscape(p.Project) + "/locations/" + url.PathEscape(p.Location)
}
