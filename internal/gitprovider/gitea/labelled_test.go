package gitea

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"deckhand/internal/gitprovider"
)

func TestLabelledBy(t *testing.T) {
	given := func(by any, label, body string) obj {
		return obj{"type": "label", "user": by, "label": obj{"name": label}, "body": body}
	}
	ada, grace := person(1, "ada", ""), person(2, "grace", "")
	pages := [][]obj{
		{given(ada, "deckhand", "1"), given(ada, "deckhand", ""), {"type": "comment", "user": ada, "label": nil, "body": "1"}},
		{given(grace, "Deckhand", "1"), given(ada, "bug", "1"), given(ada, "deckhand", ""), given(nil, "deckhand", "1")},
	}
	fail := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if fail || r.URL.Path != "/api/v1/repos/ada/engine/issues/7/timeline" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		found := []obj{}
		if page <= len(pages) {
			found = pages[page-1]
		}
		_ = json.NewEncoder(w).Encode(found)
	}))
	t.Cleanup(s.Close)
	p := adapter(s.Client(), s.URL, "token").(gitprovider.Labeller)
	for label, want := range map[string]string{"deckhand": "grace", "bug": "ada", "other": ""} {
		if by, err := p.LabelledBy(t.Context(), "ada/engine", 7, label); by != want || err != nil {
			t.Errorf("%s: %q %v", label, by, err)
		}
	}
	fail = true
	if _, err := p.LabelledBy(t.Context(), "ada/engine", 7, "bug"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Error(err)
	}
}
