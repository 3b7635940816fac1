package custom

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
)

// The files of a turn that has just ended are restored although its checkpoint is not in the list yet, and
// a conversation without files is restored without them.
func TestUndoWithoutKnownCheckpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuses bool
		want    string
	}{"a checkpoint that is being made": {false, "true"}, "no files": {true, "true false"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/events"):
					fmt.Fprint(w, `{"events":[{"id":2,"kind":"user_said","time":"2026-01-02T03:04:05Z","payload":{"text":"go"}},{"id":3,"kind":"turn_began","time":"2026-01-02T03:04:05Z","payload":{}}],"has_more":false}`)
				case strings.HasSuffix(r.URL.Path, "/checkpoints"):
					fmt.Fprint(w, `{"checkpoints":[]}`)
				default:
					var b api.RestoreConversation
					if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
						t.Error(err)
					}
					asked = append(asked, fmt.Sprint(b.Files.Value))
					if c.refuses && b.Files.Value {
						w.WriteHeader(http.StatusConflict)
						fmt.Fprint(w, `{"error":{"code":"CONVERSATION$REFUSED","message":"The conversation has no files yet."}}`)
						return
					}
					fmt.Fprint(w, `{"changed":1}`)
				}
			}))
			defer server.Close()
			text, missing, err := Source{Client: client.New(server.URL, "key")}.Undo(t.Context(), "c1", "")
			if err != nil || text != "go" || missing != "" {
				t.Errorf("%q, %q, %v", text, missing, err)
			}
			if got := strings.Join(asked, " "); got != c.want {
				t.Errorf("files were asked for: %s, want %s", got, c.want)
			}
		})
	}
}
