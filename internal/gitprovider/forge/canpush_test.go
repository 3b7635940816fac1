package forge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Each provider says in its own way who may push.
func TestCanPush(t *testing.T) {
	t.Parallel()
	rights := func(push bool) string { return fmt.Sprintf(`{"full_name":"octo/app","permissions":{"push":%t}}`, push) }
	collaborators := map[string]string{"/repos/octo/app": rights(true), "/repos/octo/other": rights(false),
		"/repos/octo/app/collaborators/ada/permission": `{"permission":"write"}`, "/repos/octo/app/collaborators/eve/permission": `{"permission":"read"}`}
	for provider, c := range map[string]struct {
		base    string
		answers map[string]string
		others  bool // it tells of others
	}{
		"github": {"/api/v3", collaborators, true},
		"gitea":  {"/api/v1", collaborators, true},
		"gitlab": {"/api/v4", map[string]string{
			"/projects/octo/app":             `{"permissions":{"project_access":null,"group_access":{"access_level":30}}}`,
			"/projects/octo/other":           `{"permissions":{"project_access":{"access_level":20},"group_access":null}}`,
			"/projects/octo/app/members/all": `[{"username":"ada","access_level":40},{"username":"eve","access_level":20}]`,
		}, true},
		"bitbucket": {"/rest/api/1.0", map[string]string{"/repos": `{"values":[{"slug":"app","project":{"key":"OCTO"}}]}`}, false},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for path, body := range c.answers {
					if r.URL.Path == c.base+path {
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprint(w, body)
						return
					}
				}
				http.NotFound(w, r)
			}))
			t.Cleanup(s.Close)
			p, err := Open(t.Context(), provider, call.Options{Client: s.Client(), Token: "t", Host: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []struct {
				repository, login string
				want              bool
			}{{"octo/app", "", true}, {"octo/other", "", false}, {"octo/app", "ada", true}, {"octo/app", "eve", false}, {"octo/app", "nobody", false}} {
				got, err := gitprovider.CanPush(t.Context(), p, q.repository, q.login)
				if q.login != "" && !c.others {
					if gitprovider.ReasonOf(err) != gitprovider.Unsupported || got {
						t.Errorf("%+v: %t %v", q, got, err)
					}
					continue
				}
				if got != q.want || err != nil {
					t.Errorf("%+v: %t %v", q, got, err)
				}
			}
		})
	}
}
