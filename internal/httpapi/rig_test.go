package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/attempts"
	"deckhand/internal/conversation/portable"
	"deckhand/internal/conversation/review"
	"deckhand/internal/httpapi/account"
	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/idempotency"
	"deckhand/internal/live"
	"deckhand/internal/native"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/settings"
	v0 "deckhand/internal/v0"
)

func TestMain(m *testing.M) {
	code := m.Run()
	removeRunner()
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

// leaks reports goroutines that go on after the tests. A connection that was just
// closed gets a minute: on a busy machine the usual second is not enough.
func leaks() (code int) {
	err := goleak.Find()
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// rig is the API on stores in memory. Nothing works on the conversations, so
// what a request did is all that can be in the log.
type rig struct {
	t        *testing.T
	log      *memlog.Log
	stored   *settings.MemStore
	access   *access.MemStore
	answers  *memAnswers
	gate     *access.Gate
	sessions *session.Sessions
	api      *Handler
	base     string
	client   *http.Client
	logs     *logBuffer
	// keys by user: admin has an admin key, ada and bob plain ones.
	keys map[string]string
	// verify is what the API asks about repositories; asked counts.
	verify func(ctx context.Context, s settings.Settings, provider, repository string) (string, error)
	asked  *atomic.Int64
}

// tune changes a rig before it is built.
type tune struct {
	config func(*Config)
	// rules changes the use cases, which have the config's stores.
	rules func(*usecase.Config)
	gate  access.Options
	clock func() time.Time
}

const priced, unpriced, keyless = "acme/priced", "acme/unpriced", "scripted/demo"

func newRig(t *testing.T, tunes ...tune) *rig {
	t.Helper()
	r := &rig{t: t, log: memlog.New(), stored: settings.NewMemStore(), access: access.NewMemStore(), answers: newMemAnswers(),
		logs: &logBuffer{}, keys: map[string]string{}, asked: &atomic.Int64{}, client: &http.Client{Transport: &http.Transport{}}}
	r.verify = func(_ context.Context, _ settings.Settings, provider, _ string) (string, error) {
		if provider == "" {
			provider = "github"
		}
		return provider, nil
	}
	limits, clock := access.Options{RatePerSecond: 1e9, Burst: 1 << 30}, time.Now
	for _, tn := range tunes {
		if tn.gate.Burst > 0 {
			limits = tn.gate
		}
		if tn.clock != nil {
			clock = tn.clock
		}
	}
	r.gate = access.NewGate(r.access, limits)
	for user, admin := range map[string]bool{"admin": true, "ada": false, "bob": false} {
		plain, _, err := r.gate.Create(t.Context(), user, "test", admin, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.keys[user] = plain
	}
	redactor := secret.NewRedactor()
	keyring, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
	if err != nil {
		t.Fatal(err)
	}
	r.sessions = session.New(r.log, session.WithClock(clock))
	hub := live.New(r.log, encodeFrame, encodeNative)
	r.sessions.Observe(hub)
	c := Config{
		Conversations: conversations.Config{Sessions: r.sessions, Log: r.log, Index: r.log, Settings: settings.New(r.stored, keyring, redactor), Hub: hub},
		Access:        rest.Admission{Gate: r.gate}, Retries: &rest.Retries{Store: r.answers, Seal: keyring}, Page: page.Config{Built: builtPage},
		Account: account.Config{Usage: account.Usage{Ledger: r.log}, Redact: redactor.Add, Models: func() []string { return []string{keyless, priced, unpriced} }},
		Server:  Server{Version: "test", DataDir: t.TempDir()},
		Logger:  slog.New(redactor.Handler(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})))}
	for _, tn := range tunes {
		if tn.config != nil {
			tn.config(&c)
		}
	}
	c.Conversations.Service = r.rules(c, tunes)
	c.Conversations.Attempts = attempts.New(attempts.Config{Conversations: c.Conversations.Service}) // it stores none
	exports := &portable.Service{Conversations: c.Conversations.Service, Queries: c.Conversations.Reader("")}
	if c.Files.Workspaces != nil {
		exports.Workspaces = c.Files.Workspaces
	}
	c.Conversations.Portable = exports
	c.Files.Reviews = &review.Service{Conversations: c.Conversations.Service, Sessions: c.Conversations.Sessions, Settings: c.Conversations.Settings, Workspaces: c.Files.Workspaces}
	r.api = New(c)
	server := httptest.NewServer(r.api)
	r.base = server.URL
	t.Cleanup(func() {
		r.api.Close()
		r.client.CloseIdleConnections()
		server.Close()
	})
	return r
}

// rules are the use cases on the stores of a config.
func (r *rig) rules(c Config, tunes []tune) *usecase.Service {
	u := usecase.Config{Sessions: c.Conversations.Sessions, Log: c.Conversations.Log, Index: c.Conversations.Index, Settings: c.Conversations.Settings, Seal: c.Retries.Seal, UserLimit: c.Account.Usage.Limit, Conflicts: c.Access.Gate, Feedback: c.Legacy.Feedback, Redact: c.Account.Redact,
		Models: usecase.Models{Default: priced,
			NeedsKey: func(s *settings.Settings) bool {
				return s.LLMAPIKey.IsZero() && (s.LLMModel == nil || *s.LLMModel != keyless) && (s.LLMBaseURL == nil || *s.LLMBaseURL == "")
			},
			HasPrice: func(model string) bool { return model != unpriced }},
		VerifyRepository: func(ctx context.Context, s settings.Settings, provider, repository, _ string) (string, error) {
			r.asked.Add(1)
			return r.verify(ctx, s, provider, repository)
		}}
	if c.Files.Workspaces != nil {
		u.Workspaces = c.Files.Workspaces
	}
	for _, tn := range tunes {
		if tn.rules != nil {
			tn.rules(&u)
		}
	}
	return usecase.New(u)
}

func encodeFrame(id session.ID, e session.Event) (live.Frame, bool, error) {
	f, err := v0.Encode(id, e)
	return live.Frame{Number: e.Number, Data: f.JSON}, err == nil && f.Kind == v0.Event, err
}

func encodeNative(_ session.ID, e session.Event) (live.Frame, bool, error) {
	line, shown, err := native.Encode(e)
	return live.Frame{Number: e.Number, Data: line}, shown, err
}

// answer is what came back.
type answer struct {
	status int
	body   string
	header http.Header
}

// do makes a request as ada. Header pairs replace what is there; an empty value
// removes it, and a name given twice is sent twice.
func (r *rig) do(method, path, body string, header ...string) answer {
	r.t.Helper()
	return r.send(r.request(method, path, strings.NewReader(body), header...))
}

// as makes a request as another user.
func (r *rig) as(user, method, path, body string) answer {
	r.t.Helper()
	return r.do(method, path, body, "X-Session-API-Key", r.keys[user])
}

func (r *rig) request(method, path string, body io.Reader, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Session-API-Key", r.keys["ada"])
	if hasBody(method) {
		req.Header.Set("Content-Type", "application/json")
	}
	setHeader(req, header)
	return req
}

func setHeader(req *http.Request, header []string) {
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Del(header[i])
	}
	for i := 0; i+1 < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] != "":
			req.Header.Add(header[i], header[i+1])
		}
	}
}

func (r *rig) send(req *http.Request) answer {
	r.t.Helper()
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	a := answer{res.StatusCode, string(b), res.Header}
	r.everywhere(req, a)
	return a
}

// direct calls the handler without a network, from an address of its own, so that
// the limit on failed keys does not end a long table.
func (r *rig) direct(from, method, path string, header ...string) answer {
	r.t.Helper()
	req := httptest.NewRequest(method, path, nil)
	req.Host, req.RemoteAddr = "localhost", from+":1234"
	setHeader(req, header)
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	a := answer{w.Code, w.Body.String(), w.Header()}
	r.everywhere(req, a)
	return a
}

// everywhere holds for every answer there is.
func (r *rig) everywhere(req *http.Request, a answer) {
	r.t.Helper()
	if len(a.header.Get("X-Request-Id")) != 16 {
		r.t.Errorf("%s %s: X-Request-Id %q", req.Method, req.URL.Path, a.header.Get("X-Request-Id"))
	}
	if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
		r.t.Errorf("%s %s: security headers are missing: %v", req.Method, req.URL.Path, a.header)
	}
	if a.status >= 400 && req.Method != http.MethodHead {
		if a.header.Get("Content-Type") != "application/json" || !json.Valid([]byte(a.body)) {
			r.t.Errorf("%s %s: an error that is not JSON: %d %q", req.Method, req.URL.Path, a.status, a.body)
		}
	}
}

func (a answer) want(t *testing.T, status int, parts ...string) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, p := range parts {
		if !strings.Contains(a.body, p) {
			t.Fatalf("%q is not in %s", p, a.body)
		}
	}
	return a
}

func decoded[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// settle stores settings with which conversations can be created.
func (r *rig) settle(users ...string) {
	r.t.Helper()
	for _, u := range users {
		r.as(u, "POST", "/api/settings", `{"llm_model":"`+keyless+`"}`).want(r.t, 200)
	}
}

// create makes a conversation of ada's and returns its id.
func (r *rig) create(body string, header ...string) string {
	r.t.Helper()
	a := r.do("POST", "/api/conversations", body, header...).want(r.t, 200)
	return decoded[api.ConversationResponse](r.t, a).ConversationID
}

// rows is everything of a user's that is not deleted.
func (r *rig) rows(user string) []session.Row {
	r.t.Helper()
	rows, err := r.log.Rows(r.t.Context(), session.Query{Owner: user, Limit: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// events is a conversation's log.
func (r *rig) events(id string) []session.Payload {
	r.t.Helper()
	var out []session.Payload
	for e, err := range r.log.Read(r.t.Context(), session.ID(id), 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, e.Payload)
	}
	return out
}

func said(events []session.Payload) []session.UserSaid {
	var out []session.UserSaid
	for _, p := range events {
		if m, ok := p.(session.UserSaid); ok {
			out = append(out, m)
		}
	}
	return out
}

// memAnswers keeps answers in memory. failing makes the next saves fail, which
// is what a crash between the effect and the stored answer looks like.
type memAnswers struct {
	mu      sync.Mutex
	m       map[string]idempotency.Answer
	failing int
	hold    <-chan struct{} // saves wait for it
}

func newMemAnswers() *memAnswers { return &memAnswers{m: map[string]idempotency.Answer{}} }

func (s *memAnswers) Answer(_ context.Context, user, key string) (idempotency.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.m[user+"\x00"+key]
	if !ok {
		return a, idempotency.ErrNotFound
	}
	return a, nil
}

func (s *memAnswers) SaveAnswer(_ context.Context, a idempotency.Answer) error {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing > 0 {
		s.failing--
		return io.ErrClosedPipe
	}
	if _, ok := s.m[a.User+"\x00"+a.Key]; !ok {
		a.Body = slices.Clone(a.Body)
		s.m[a.User+"\x00"+a.Key] = a
	}
	return nil
}

func (s *memAnswers) DropAnswers(context.Context, time.Time) error { return nil }

func (s *memAnswers) fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = n
}

func (s *memAnswers) all() []idempotency.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []idempotency.Answer
	for _, a := range s.m {
		out = append(out, a)
	}
	return out
}

// logBuffer collects the log of a server.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
