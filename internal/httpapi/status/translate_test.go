package status_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/store/postgres/pg"
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

// Work that was cancelled is the client's doing only if the client has left. A client that waits must
// not take it for a refusal, which it would not repeat.
func TestCancelledWork(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("start the sandbox: %w", context.Canceled)
	waiting, leave := context.WithCancel(t.Context())
	if f := status.For(waiting, err); f.Status != 503 || f.Msg != "The request was interrupted. Try again." {
		t.Errorf("a client that waits is told %d %s", f.Status, f.Msg)
	}
	leave()
	if f := status.For(waiting, err); f.Status != 499 {
		t.Errorf("a client that has left: %d %s", f.Status, f.Msg)
	}
}

// While the database does not respond, responses say when to retry.
func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, err := range []error{pg.ErrDown, pg.ErrOverloaded, fmt.Errorf("%w (%w)", pg.ErrTimeout, context.DeadlineExceeded), context.DeadlineExceeded} {
		f := status.Of(fmt.Errorf("append: %w", err))
		w := httptest.NewRecorder()
		f.Write(w, rest.Plain)
		if w.Code != 503 || w.Header().Get("Retry-After") != "5" {
			t.Errorf("%v: %d %v %s", err, w.Code, w.Header(), w.Body)
		}
	}
}
