package llm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"deckhand/internal/llm"
)

// A server may ask for the same request at another of its addresses: it gets all parts again.
func TestPostAgain(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	read := func(r *http.Request) string {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(b)) {
			t.Errorf("%d bytes announced, %d received: %v", r.ContentLength, len(b), err)
		}
		return string(b)
	}
	mux.HandleFunc("/old", func(w http.ResponseWriter, r *http.Request) {
		read(r)
		http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/new", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, read(r)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	res, err := llm.Post(t.Context(), server.Client(), server.URL+"/old", nil, [][]byte{[]byte(`{"a":`), nil, []byte("1"), []byte("}")})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != `{"a":1}` {
		t.Errorf("the server got %q, %v", b, err)
	}
}
