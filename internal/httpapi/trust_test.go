package httpapi

import (
	"testing"

	"deckhand/internal/session"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.settle("ada")
	begin := func(id session.ID, c session.Created) string {
		t.Helper()
		if _, err := r.sessions.Create(t.Context(), id, c, nil); err != nil {
			t.Fatal(err)
		}
		return "/api/conversations/" + string(id) + "/trust"
	}
	const yes, no = `{"trusted":true}`, `{"trusted":false}`
	bare := begin("bare", session.Created{Owner: "ada"})
	r.do("PUT", bare, yes).want(t, 409, `"msg_id":"REQUEST$CONFLICT"`, "The conversation has no repository.")
	r.as("bob", "PUT", bare, yes).want(t, 404, "Conversation not found")

	outside := begin("outside", session.Created{Owner: "ada", Repository: "acme/site", Provider: "github", Outside: session.OutsideFork})
	r.do("PUT", outside, yes).want(t, 200, `"trusted":true`)
	r.do("GET", "/api/trusted-repositories", "").want(t, 200, `"repositories":[]`)

	own := begin("own", session.Created{Owner: "ada", Repository: "acme/site", Provider: "github"})
	r.do("PUT", own, yes).want(t, 200, `"trusted":true`)
	r.do("GET", own, "").want(t, 200, `"trusted":true`, `"reason":"user"`)
	r.do("GET", "/api/trusted-repositories", "").want(t, 200, `"repositories":["github.com/acme/site"]`)
	r.do("PUT", own, no).want(t, 200, `"trusted":false`)
	r.do("GET", "/api/trusted-repositories", "").want(t, 200, `"repositories":[]`)
}
