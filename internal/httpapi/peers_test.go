package httpapi

import "testing"

// What is answered by every server is a route that there is.
func TestAnywhereNamesRoutes(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	home := 0
	for _, r := range New(Config{}).routes {
		known[r.ID] = true
		if atHome(&r) {
			home++
		}
	}
	for id := range anywhere {
		if !known[id] {
			t.Errorf("there is no route %s", id)
		}
	}
	if home < 20 {
		t.Errorf("%d routes are answered where the workspace is", home)
	}
}
