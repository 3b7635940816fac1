package providertest

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitprovider"
)

// host is a server on loopback that notes what it is asked.
type host struct {
	*httptest.Server
	mu  sync.Mutex
	log []request
}

// request is what was asked.
type request struct {
	line       string // method and address
	body       []byte
	authorized bool // a header carries the token
	headers    http.Header
}

// serve starts the fake.
func serve(t *testing.T, o Options) *host {
	return listen(t, o.Serve(t))
}

func listen(t *testing.T, answer http.Handler) *host {
	h := &host{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.mu.Lock()
		h.log = append(h.log, request{r.Method + " " + r.URL.RequestURI(), body, carriesToken(r.Header), r.Header.Clone()})
		h.mu.Unlock()
		answer.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) requests() []request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]request(nil), h.log...)
}

// provider makes the adapter, with connections of its own.
func (h *host) provider(t *testing.T, o Options, token string) gitprovider.Provider {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return o.New(&http.Client{Transport: transport}, h.URL, token)
}

// carriesToken looks for the token as it is and as a password.
func carriesToken(headers http.Header) bool {
	for _, values := range headers {
		for _, value := range values {
			if strings.Contains(value, Token) {
				return true
			}
			_, encoded, _ := strings.Cut(value, " ")
			if plain, err := base64.StdEncoding.DecodeString(encoded); err == nil && strings.Contains(string(plain), "conformance-token-4711") {
				return true
			}
		}
	}
	return false
}
