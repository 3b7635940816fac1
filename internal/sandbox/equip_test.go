package sandbox

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"deckhand/internal/sandbox/rpc"
)

// An environment is told once for each connection, and again when it has changed.
func TestEquip(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	handlers := rpc.Handlers{Calls: map[string]rpc.Handler{}}
	for _, method := range []string{"hello", "welcome", "remember", "setenv"} {
		handlers.Calls[method] = func(context.Context, *rpc.Call) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, method)
			return struct{}{}, nil
		}
	}
	ours, theirs := net.Pipe()
	peer, err := rpc.Accept(theirs, handlers)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	s, err := Connect(t.Context(), Link{Conn: ours})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	env := map[string]string{"A": "1"}
	if err := s.welcome(t.Context(), Spec{Env: env}); err != nil {
		t.Fatal(err)
	}
	equip := func(env map[string]string, want ...string) {
		t.Helper()
		mu.Lock()
		calls = nil
		mu.Unlock()
		if err := s.Under(7).Equip(t.Context(), nil, env); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(calls, want) {
			t.Errorf("%v is told with %v, wanted %v", env, calls, want)
		}
	}
	equip(map[string]string{"A": "1"})
	env["A"] = "2" // the caller's own, which may change it
	equip(env, "remember", "setenv")
	equip(env)
	if err := s.SetEnv(t.Context(), map[string]string{"A": "3"}); err != nil {
		t.Fatal(err)
	}
	equip(env, "remember", "setenv")
}
