package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"deckhand/internal/access"
	"deckhand/internal/notify"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the real store with the parts that send what is in it.
type rig struct {
	t        *testing.T
	path     string
	db       *sqlite.DB
	keyring  *secret.Keyring
	hooks    *notify.Hooks
	sessions *session.Sessions
	outbox   *watched
	logs     strings.Builder // of the dispatchers that were stopped
	last     *notify.Dispatcher
}

func newRig(t *testing.T) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deckhand.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	keyring, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"maria", "otto"} {
		if err := db.CreateUser(t.Context(), access.User{Name: name, CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	store := db.Webhooks()
	return &rig{t: t, path: path, db: db, keyring: keyring, sessions: session.New(db), outbox: &watched{Outbox: store, settled: make(chan notify.Delivery, 1000)},
		hooks: &notify.Hooks{Store: store, Deliveries: store, Seal: keyring}}
}

// run sends until stop is called, which waits for the end.
func (r *rig) run(client *http.Client) (stop func()) {
	logger := slog.New(slog.NewTextHandler(&r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := notify.NewDispatcher(r.outbox, r.keyring, client, logger)
	r.last = d
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// anywhere dials loopback addresses, as a server does that listens on one.
func anywhere() *http.Client {
	return outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 0)
}

// add makes a webhook and returns it with its secret.
func (r *rig) add(user, url string, events ...string) (notify.View, string) {
	r.t.Helper()
	v, s, err := r.hooks.Create(r.t.Context(), user, notify.Change{URL: &url, Events: events})
	if err != nil {
		r.t.Fatal(err)
	}
	return v, s.Reveal()
}

func (r *rig) get(user, id string) notify.View {
	r.t.Helper()
	v, err := r.hooks.Get(r.t.Context(), user, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// create makes a conversation, which is news.
func (r *rig) create(owner string, id session.ID) {
	r.t.Helper()
	if _, err := r.sessions.Create(r.t.Context(), id, session.Created{Owner: owner, Repository: "a/secret"}, &session.UserSaid{Text: "what was said"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) change(id session.ID, rule func(session.State) ([]session.Payload, error)) {
	r.t.Helper()
	if _, err := r.sessions.Update(r.t.Context(), id, rule); err != nil {
		r.t.Fatal(err)
	}
}

// deliveries are a webhook's, the newest first.
func (r *rig) deliveries(user, id string) []notify.Delivery {
	r.t.Helper()
	found, err := r.hooks.Page(r.t.Context(), user, id, 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// watched tells of every attempt that was settled, and fails on demand.
type watched struct {
	notify.Outbox
	settled chan notify.Delivery
	broken  atomic.Int32 // how many times settling fails
}

func (w *watched) Settle(ctx context.Context, h notify.Webhook, d notify.Delivery) error {
	if w.broken.Add(-1) >= 0 {
		return errors.New("the store broke")
	}
	err := w.Outbox.Settle(ctx, h, d)
	if err == nil {
		w.settled <- d
	}
	return err
}

// request is what a receiver got.
type request struct {
	header http.Header
	body   []byte
	at     time.Time
}

// data is the part of a body that says what it is about.
type data struct {
	Type      string
	Timestamp time.Time
	Data      map[string]any
}

func (q request) decode(t *testing.T) data {
	t.Helper()
	var d data
	if err := json.Unmarshal(q.body, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// verify checks the signature as a receiver would.
func (q request) verify(t *testing.T, secret string) {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Verify(q.body, q.header); err != nil {
		t.Error(err)
	}
}

// receiver answers as it is told, and hands out what it got.
type receiver struct {
	got chan request
	// answer is asked for every request, with the number of the request.
	answer func(n int, w http.ResponseWriter)
	mu     sync.Mutex
	n      int
}

func newReceiver(answer func(n int, w http.ResponseWriter)) *receiver {
	if answer == nil {
		answer = func(int, http.ResponseWriter) {}
	}
	return &receiver{got: make(chan request, 1000), answer: answer}
}

func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.n++
	n := v.n
	v.mu.Unlock()
	v.got <- request{r.Header, body, time.Now()}
	v.answer(n, w)
}

// serve makes the receiver reachable on loopback.
func (v *receiver) serve(t *testing.T) string {
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	return server.URL + "/hook?token=as-secret-as-a-key"
}

// piped is a client whose connections all lead to the handler, in memory: in a
// bubble, time passes while nobody but the network would have to be waited for.
func piped(t *testing.T, handler http.Handler) *http.Client {
	conns := make(chan net.Conn)
	ended := make(chan struct{})
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(&pipes{conns, ended}) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		close(ended)
		_ = server.Close()
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener for piped.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
