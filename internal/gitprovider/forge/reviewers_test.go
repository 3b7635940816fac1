package forge

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Each provider is asked for reviews in its own way.
func TestAskReview(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string][]string{
		"github": {`POST /api/v3/repos/octo/app/pulls/7/requested_reviewers {"reviewers":["ada","bob"]}`},
		"gitea":  {`POST /api/v1/repos/octo/app/pulls/7/requested_reviewers {"reviewers":["ada","bob"]}`},
		"gitlab": {`GET /api/v4/users `, `GET /api/v4/users `, `PUT /api/v4/projects/octo/app/merge_requests/7 {"reviewer_ids":[3,3]}`},
		"bitbucket": {`POST /rest/api/1.0/projects/octo/repos/app/pull-requests/7/participants {"role":"REVIEWER","user":{"name":"ada"}}`,
			`POST /rest/api/1.0/projects/octo/repos/app/pull-requests/7/participants {"role":"REVIEWER","user":{"name":"bob"}}`},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				got = append(got, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(b)))
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/users") {
					_ = json.NewEncoder(w).Encode([]map[string]int{{"id": 3}})
					return
				}
				_, _ = io.WriteString(w, "{}")
			}))
			t.Cleanup(s.Close)
			p, err := Open(t.Context(), provider, call.Options{Client: s.Client(), Token: "t", Host: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			got = nil // what it asked to find out the version
			if err := gitprovider.AskReview(t.Context(), p, "octo/app", 7, []string{"ada", "bob"}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("asked %q, want %q", got, want)
			}
		})
	}
}
