package trigger_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/access"
	"deckhand/internal/conversation"
	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/gitea"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/store/sqlite"
	"deckhand/internal/trigger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the real store with the parts that work on it, and a place in the shape
// of Gitea. Its user is maria, who is called ada there.
type rig struct {
	t            *testing.T
	db           *sqlite.DB
	keyring      *secret.Keyring
	sessions     *session.Sessions
	integrations *trigger.Integrations
	inbox        *watched
	worker       *trigger.Worker
	receiver     *trigger.Receiver
	place        *place
	logs         *lockedBuffer

	mu      sync.Mutex
	started []trigger.Start
	// refuse is what Start says to a branch; nil is yes.
	refuse func(branch string) error
}

// watched tells the test what was settled.
type watched struct {
	trigger.Inbox
	settled chan trigger.Delivery
	// then is called after a delivery was settled; nil calls nothing.
	then func(trigger.Delivery)
}

func (w *watched) Settle(ctx context.Context, ds ...trigger.Delivery) error {
	err := w.Inbox.Settle(ctx, ds...)
	for _, d := range ds {
		if err == nil {
			w.settled <- d
			if w.then != nil {
				w.then(d)
			}
		}
	}
	return err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "deckhand.db"), sqlite.Options{})
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
	r := &rig{t: t, db: db, keyring: keyring, place: newPlace(t), logs: &lockedBuffer{}, inbox: &watched{Inbox: db.Triggers(), settled: make(chan trigger.Delivery, 1000)}}
	r.integrations = &trigger.Integrations{Store: db.Triggers(), Seal: keyring, Base: func() string { return "https://deckhand.example.org" },
		Whoami: func(_ context.Context, _, provider string) (string, string, error) { return r.place.URL, "ada", nil }}
	r.again()
	return r
}

// again is what a restart leaves: the store, and new parts on it.
func (r *rig) again() {
	logger := slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.sessions = session.New(r.db)
	r.worker = trigger.NewWorker(trigger.Config{Inbox: r.inbox, Sessions: r.sessions, Log: r.db, Index: r.db, Logger: logger, Start: r.start, Say: conversation.New(conversation.Config{Sessions: r.sessions, Index: r.db, Settings: settings.New(settings.NewMemStore(), nil, secret.NewRedactor())}).Say,
		Forge: func(context.Context, string, string) (gitprovider.Provider, string, error) {
			return gitea.New(call.Options{Client: r.place.Client(), Token: token, Host: r.place.URL, Name: "gitea"}), r.place.URL, nil
		},
		Page: func(id session.ID) string { return "https://deckhand.example.org/conversations/" + string(id) }})
	r.sessions.Observe(r.worker)
	r.receiver = trigger.NewReceiver(r.inbox, r.keyring, r.worker.Wake, logger)
}

// start creates the conversation, as the door would.
func (r *rig) start(ctx context.Context, s trigger.Start) error {
	r.mu.Lock()
	r.started = append(r.started, s)
	refuse := r.refuse
	r.mu.Unlock()
	if refuse != nil {
		if err := refuse(s.Branch); err != nil {
			return err
		}
	}
	_, err := r.sessions.Create(ctx, s.ID, session.Created{Owner: s.User, Trigger: conversation.TriggerResolver, Repository: s.Repository, Branch: s.Branch, Provider: s.Provider}, &session.UserSaid{Text: s.Text, Key: s.Key})
	return err
}

func (r *rig) starts() []trigger.Start {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]trigger.Start(nil), r.started...)
}

// run works until stop is called, which waits for the end.
func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	worker := r.worker
	wg.Go(func() {
		if err := worker.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// add makes an integration of a user's and returns it with its secret.
func (r *rig) add(user, provider string, c trigger.Change) (trigger.Integration, string) {
	r.t.Helper()
	in, shown, err := r.integrations.Create(r.t.Context(), user, provider, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return in, shown.Reveal()
}

// reaches waits until a delivery is in a state.
func (r *rig) reaches(state trigger.State) trigger.Delivery {
	r.t.Helper()
	for {
		select {
		case d := <-r.inbox.settled:
			if d.State == state {
				return d
			}
		case <-time.After(5 * time.Minute):
			r.t.Fatalf("nothing is %s; the log: %s", state, r.logs)
		}
	}
}

// says lets the agent of a conversation answer all that was said, in a turn of its own.
func (r *rig) says(id session.ID, text string, meanwhile ...func()) {
	r.t.Helper()
	do := func(decide func(s session.State) ([]session.Payload, error)) session.State {
		r.t.Helper()
		st, err := r.sessions.Update(r.t.Context(), id, decide)
		if err != nil {
			r.t.Fatal(err)
		}
		return st
	}
	st := do(func(s session.State) ([]session.Payload, error) {
		if s.Claim != 0 {
			return nil, nil
		}
		return []session.Payload{session.Claimed{By: "test"}, session.WorkspaceReady{}}, nil
	})
	do(func(s session.State) ([]session.Payload, error) { return s.BeginTurn(st.Claim) })
	ask := fmt.Sprint("call ", time.Now().UnixNano())
	do(func(s session.State) ([]session.Payload, error) {
		return s.AskModel(st.Claim, session.ModelAsked{Call: ask, Model: "m"}, nil)
	})
	for _, do := range meanwhile {
		do()
	}
	do(func(s session.State) ([]session.Payload, error) {
		return s.Answered(st.Claim, session.ModelAnswered{Call: ask, Text: text, Final: true})
	})
	do(func(s session.State) ([]session.Payload, error) {
		return s.EndTurn(st.Claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
	})
}

const token = "gitea_canary_4711"

// place is a place in the shape of Gitea with the repository octo/app, in which
// are the issue 7 and the pull request 12.
type place struct {
	*httptest.Server
	mu       sync.Mutex
	comments map[string][]string
	labeller string // who gave the issue its label; ada if empty
	posted   chan string
	// fail is the status that a request gets; 0 is the usual answer.
	fail func(method, path string) int
	// kept says that a comment is stored although the request fails.
	kept bool
}

func newPlace(t *testing.T) *place {
	p := &place{comments: map[string][]string{"7": {"It did here too."}, "12": nil}, posted: make(chan string, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *place) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Authorization"), token) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	status := 0
	if p.fail != nil {
		status = p.fail(r.Method, r.URL.Path)
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/repos/octo/app/")
	number := ""
	if parts := strings.Split(path, "/"); len(parts) > 1 {
		number = parts[1]
	}
	if r.Method == http.MethodPost && strings.HasSuffix(path, "/comments") && (status == 0 || p.kept) {
		var in struct{ Body string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		p.comments[number] = append(p.comments[number], in.Body)
		p.posted <- in.Body
	}
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	_ = json.NewEncoder(w).Encode(p.answer(r, path, number))
}

func (p *place) answer(r *http.Request, path, number string) any {
	person := map[string]any{"login": "eve"}
	switch {
	case r.Method == http.MethodPost:
		return map[string]any{"id": 1}
	case strings.HasSuffix(path, "/comments"):
		out := []any{}
		for _, c := range p.comments[number] {
			out = append(out, map[string]any{"body": c, "user": person})
		}
		return out
	case strings.HasSuffix(path, "/reviews"), strings.HasSuffix(path, "/statuses"):
		return []any{}
	case strings.HasSuffix(path, "/timeline"):
		if r.URL.Query().Get("page") != "1" {
			return []any{}
		}
		given := func(by, label, body string) any {
			return map[string]any{"type": "label", "user": map[string]any{"login": by}, "label": map[string]any{"name": label}, "body": body}
		}
		return []any{given("mallory", "deckhand", "1"), given("ada", "deckhand", ""), given(cmp.Or(p.labeller, "ada"), "Deckhand", "1"), given("ada", "bug", "1")}
	case strings.HasPrefix(path, "issues/"):
		return map[string]any{"number": 7, "title": "The wheel came off", "body": "It rolls away. ----- end", "html_url": p.URL + "/octo/app/issues/7", "user": person, "state": "open"}
	case strings.HasPrefix(path, "pulls/"):
		return map[string]any{"number": 12, "title": "Mend the wheel", "body": "See #7.", "html_url": p.URL + "/octo/app/pulls/12", "user": person, "state": "open",
			"head": map[string]any{"ref": "mend", "sha": "0c"}, "base": map[string]any{"ref": "main"}}
	}
	return map[string]any{}
}

// said are the comments below an issue that are ours.
func (p *place) said(number string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range p.comments[number] {
		if gitprovider.Signed(c) {
			out = append(out, c)
		}
	}
	return out
}

func (p *place) failing(kept bool, fail func(method, path string) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail, p.kept = fail, kept
}
