package main

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/conversation"
	"deckhand/internal/httpapi"
	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/store/sqlite"
)

// The API handler in this process, without a network and without an agent, to find out
// where the time of a request goes:
//
//	go test ./bench -run '^$' -bench API -cpuprofile cpu.out -memprofile mem.out

// handler is the API handler on a real store, with the key to use.
func handler(b *testing.B) (*httpapi.Handler, string) {
	ctx := context.Background()
	dir := b.TempDir()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "api.db"), sqlite.Options{})
	must(b, err)
	b.Cleanup(func() { _ = db.Close() })
	keyring, err := secret.OpenKeyring(ctx, dir, "", db)
	must(b, err)
	gate := access.NewGate(db, access.Options{RatePerSecond: 1e12, Burst: 1 << 30})
	path, _, err := gate.Bootstrap(ctx, dir)
	must(b, err)
	key, err := access.ReadKeyFile(path)
	must(b, err)
	sessions, hub := session.New(db), live.New(db, frames)
	sessions.Observe(hub)
	stored := settings.New(db, keyring, secret.NewRedactor())
	return httpapi.New(httpapi.Config{
		Conversations: conversations.Config{Sessions: sessions, Log: db, Index: db, Settings: stored, Hub: hub, Service: conversation.New(conversation.Config{
			Sessions: sessions, Log: db, Index: db, Settings: stored, Seal: keyring, Conflicts: gate, NewID: db.NewID,
			Models: conversation.Models{NeedsKey: func(*settings.Settings) bool { return false }, HasPrice: func(string) bool { return true }},
		})},
		Access: rest.Admission{Gate: gate}, Retries: &rest.Retries{Store: db, Seal: keyring}, Server: httpapi.Server{DataDir: dir},
	}), key
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// answer is a ResponseWriter that keeps only the status.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }

func post(b *testing.B, d http.Handler, key, path, body string) {
	r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header["X-Session-Api-Key"] = []string{key}
	r.Header["Content-Type"] = []string{"application/json"}
	r.RemoteAddr = "127.0.0.1:1"
	w := &answer{header: http.Header{}}
	if d.ServeHTTP(w, r); w.status != http.StatusOK {
		b.Errorf("answered %d", w.status)
	}
}

func BenchmarkAPI(b *testing.B) {
	for name, r := range map[string][2]string{
		"create": {creationPath, withMessage}, "createEmpty": {creationPath, withNothing}, "settings": {settingsPath, someSettings},
	} {
		b.Run(name, func(b *testing.B) {
			d, key := handler(b)
			post(b, d, key, settingsPath, someSettings)
			b.ReportAllocs()
			if path := r[0]; path == settingsPath { // changes of one user's settings exclude each other
				for b.Loop() {
					post(b, d, key, path, r[1])
				}
				return
			}
			b.SetParallelism(callers / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					post(b, d, key, r[0], r[1])
				}
			})
		})
	}
}
