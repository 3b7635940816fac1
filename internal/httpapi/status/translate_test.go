package status_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/workspace"
)

// Names of files need not be UTF-8; an answer that lists them is.
func TestRestoreConflictWithOddNames(t *testing.T) {
	t.Parallel()
	f := status.OfRefusal(&usecase.Refusal{Kind: usecase.Conflict, Code: api.CodeRestoreConflict, Text: "changed: b\xff",
		Own: &workspace.OwnFiles{Files: []string{"b\xff", "a"}, Repositories: []string{"r\xfe"}, Count: 3}})
	w := httptest.NewRecorder()
	rest.WriteJSON(w, 409, f.Body)
	if body := w.Body.String(); w.Code != 409 || !strings.Contains(body, fmt.Sprintf("%q,%q", "b\uFFFD", "a")) || !strings.Contains(body, "r\uFFFD") {
		t.Errorf("%d %s", w.Code, body)
	}
}
