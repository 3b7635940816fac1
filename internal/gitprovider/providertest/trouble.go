package providertest

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gitprovider"
)

// trouble is a way in which a host misbehaves.
type trouble struct {
	name   string
	answer http.HandlerFunc
	want   gitprovider.Reason
	retry  time.Duration
	parsed bool // only what is read as JSON can notice
}

// echo is a body that gives the token back, as a careless host may.
const echo = `{"message": "no luck with ` + Token + `", "error": {"message": "no luck with ` + Token + `"}}`

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(echo))
	}
}

var troubles = []trouble{
	{name: "401", answer: status(401), want: gitprovider.BadToken},
	{name: "403", answer: status(403), want: gitprovider.Scope},
	{name: "403-limit", answer: status(403, "X-RateLimit-Remaining", "0", "Retry-After", "60"), want: gitprovider.RateLimited, retry: time.Minute},
	{name: "429", answer: status(429, "Retry-After", "7"), want: gitprovider.RateLimited, retry: 7 * time.Second},
	{name: "404", answer: status(404), want: gitprovider.NotFound},
	{name: "422", answer: status(422), want: gitprovider.Refused},
	{name: "500", answer: status(500), want: gitprovider.Unavailable},
	{name: "503", answer: status(503, "Retry-After", "5"), want: gitprovider.Unavailable},
	{name: "truncated", want: gitprovider.Unavailable, answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(`{"id": 1, "values": [`))
	}},
	{name: "hung up", want: gitprovider.Unavailable, answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{name: "HTML", want: gitprovider.Unavailable, parsed: true, answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Sign in</title>"))
	}},
}

// failures makes every call against every trouble.
func failures(t *testing.T, o Options) {
	for _, trouble := range troubles {
		s := listen(t, trouble.answer)
		p := s.provider(t, o, Token)
		for _, c := range calls(o.World) {
			if trouble.parsed && c.raw || slices.Contains(o.Tolerates[c.name], trouble.name) {
				continue
			}
			what := trouble.name + ", " + c.name
			_, err := c.do(t.Context(), p)
			reason(t, what, err, trouble.want)
			if e, ok := errors.AsType[*gitprovider.Error](err); ok && e.RetryAfter != trouble.retry {
				t.Errorf("%s: retry after %v, want %v", what, e.RetryAfter, trouble.retry)
			}
		}
	}
	// The server is closed.
	gone := listen(t, http.NotFoundHandler())
	p := gone.provider(t, o, Token)
	gone.Close()
	for _, c := range calls(o.World) {
		_, err := c.do(t.Context(), p)
		reason(t, "no host, "+c.name, err, gitprovider.Unavailable)
	}
}

// reason looks at an error: why, whose, in whole sentences, and without the token.
func reason(t *testing.T, what string, err error, want gitprovider.Reason) {
	t.Helper()
	e, ok := errors.AsType[*gitprovider.Error](err)
	if !ok {
		t.Errorf("%s: %v is no *gitprovider.Error", what, err)
		return
	}
	if e.Reason != want || e.Provider == "" || e.Host == "" || e.Message == "" {
		t.Errorf("%s: %+v, want %s", what, e, want)
	}
	text := e.Message + e.Host + e.Provider
	for _, secret := range []string{"conformance-token-4711", base64.StdEncoding.EncodeToString([]byte(Token))} {
		if strings.Contains(text, secret) {
			t.Errorf("%s: the token is in the error: %s", what, text)
		}
	}
}

// denial looks whether the user sees why a proposal was refused.
func denial(t *testing.T, o Options) {
	if o.Denial == "" || o.Says == "" {
		t.Fatal("the options do not say how the provider refuses a proposal")
	}
	fake := o.Serve(t)
	s := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			fake.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(o.Denial))
	}))
	_, err := s.provider(t, o, Token).Propose(t.Context(), o.World.Proposal)
	reason(t, "Propose", err, gitprovider.Refused)
	if err == nil || !strings.Contains(err.Error(), o.Says) {
		t.Errorf("%v does not say %q", err, o.Says)
	}
}

// absent asks for what is not there.
func absent(t *testing.T, o Options) {
	w, s := o.World, serve(t, o)
	p := s.provider(t, o, Token)
	for what, do := range map[string]func() error{
		"repository": func() error { _, err := p.Repository(t.Context(), Missing); return err },
		"branches of none": func() error {
			_, err := p.Branches(t.Context(), Missing, gitprovider.BranchQuery{Page: 1, PerPage: 30})
			return err
		},
		"folder":  func() error { _, err := p.Folder(t.Context(), w.Repository.Name, w.Ref, "no/such/folder"); return err },
		"file":    func() error { _, err := p.File(t.Context(), w.Repository.Name, w.Ref, "no/such.md"); return err },
		"request": func() error { _, err := p.Request(t.Context(), w.Repository.Name, 99999); return err },
		"issue":   func() error { _, err := p.Issue(t.Context(), w.Repository.Name, 99999); return err },
		"proposed": func() error {
			_, err := p.Proposed(t.Context(), w.Repository.Name, "no-such-source", "main")
			return err
		},
	} {
		reason(t, what, do(), gitprovider.NotFound)
	}
}

// anonymous asks with no token: no header pretends there were one.
func anonymous(t *testing.T, o Options) {
	s := serve(t, o)
	if _, err := s.provider(t, o, "").Repository(t.Context(), o.World.Repository.Name); err != nil {
		t.Error(err)
	}
	for _, r := range s.requests() {
		for _, name := range []string{"Authorization", "Private-Token", "Cookie"} {
			if value, ok := r.headers[name]; ok {
				t.Errorf("%s has %s: %q", r.line, name, value)
			}
		}
	}
}

// redirects leads every call to another host, which must not see the token.
func redirects(t *testing.T, o Options) {
	other := listen(t, http.NotFoundHandler())
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		s := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.RequestURI(), code)
		}))
		p := s.provider(t, o, Token)
		for _, c := range calls(o.World) {
			if _, err := c.do(t.Context(), p); err == nil && !slices.Contains(o.Tolerates[c.name], "404") {
				t.Errorf("%s: another host answered for it", c.name)
			}
		}
	}
	for _, r := range other.requests() {
		if r.authorized || strings.Contains(r.line, "conformance-token") {
			t.Errorf("the token went to another host: %s", r.line)
		}
		if len(r.body) > 0 {
			t.Errorf("what was to be written went to another host: %s", r.line)
		}
	}
	if len(other.requests()) == 0 {
		t.Error("no redirect was followed")
	}
}

// cancelled cancels the call while the host works: the call returns, and the host sees the closed
// connection.
func cancelled(t *testing.T, o Options) {
	for _, c := range calls(o.World) {
		asked, left := make(chan struct{}, 8), make(chan struct{}, 8)
		s := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { _, err := c.do(ctx, s.provider(t, o, Token)); result <- err }()
		select {
		case <-asked:
		case err := <-result:
			t.Fatalf("%s answered without asking: %v", c.name, err)
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", c.name, err)
		}
		<-left
	}
}
