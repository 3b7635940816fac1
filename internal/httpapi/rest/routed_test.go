package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"deckhand/internal/access"
)

// A request that another server forwarded was counted there.
func TestForwardedRequestsCountOnce(t *testing.T) {
	t.Parallel()
	gate := access.NewGate(access.NewMemStore(), access.Options{RatePerSecond: 1e-9, Burst: 2})
	key, _, err := gate.Create(t.Context(), "ada", "", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	guard := NewGuard(Admission{Gate: gate}, slog.New(slog.DiscardHandler))
	ask := func(routed bool) int {
		r := httptest.NewRequest(http.MethodGet, "/api/me", nil)
		r.Header.Set("X-Session-API-Key", key)
		if routed {
			r = Routed(r)
		}
		if _, f := guard.Identify(http.Header{}, r); f != nil {
			return f.Status
		}
		return http.StatusOK
	}
	for range 5 {
		if status := ask(true); status != http.StatusOK {
			t.Errorf("a forwarded request: %d", status)
		}
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if status := ask(false); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
}
