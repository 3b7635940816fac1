package gitea

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/gitprovider"
)

// FuzzSearch: whatever is searched for, pasted addresses included, the host is
// asked for a search or for one repository, and no other host is asked at all.
func FuzzSearch(f *testing.F) {
	for _, text := range []string{
		"engine", "https://git.example.org/ada/engine", "git@git.example.org:ada/engine.git", "https://git.example.org/ada/../admin/users",
		"https://git.example.org/ada/engine%2fhooks", "git.example.org/a/b/c?x#y", "https://git.example.org/ada/engine/pulls/3", "ssh://x@git.example.org:22/-/-",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v1/repos/")
			if !ok || r.URL.Host != "git.example.org" || path != "search" && !gitprovider.ValidRepository(path) {
				t.Errorf("%q asks for %s", text, r.URL)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte("{}")))}, nil
		})}
		if _, err := adapter(client, "git.example.org", "token").Search(context.Background(), gitprovider.SearchQuery{Text: text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzFolder: no answer, however odd, is more than an error.
func FuzzFolder(f *testing.F) {
	for _, body := range []string{`[{"name":"a","path":"b/a","type":"dir"}]`, `{"name":"a"}`, "null", "[null]", " {}", `[{"type":1}]`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
		})}
		files, err := adapter(client, "git.example.org", "token").Folder(context.Background(), "ada/engine", "", "b")
		if err != nil && (len(files) > 0 || gitprovider.ReasonOf(err) == "") {
			t.Errorf("%d files and %v", len(files), err)
		}
	})
}
