package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/outbound"
	"deckhand/internal/tool"
	"deckhand/internal/tool/search"
	"deckhand/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "tvly-0123456789"

func TestSpec(t *testing.T) {
	s := search.New(nil, "", nil).Spec()
	tooltest.Spec(t, s, []string{`{"query":"x"}`, `{"query":"x","max_results":20}`}, []string{`{}`, `{"query":1}`, `{"query":"x","max_results":21}`})
	if !s.ReadOnly || s.Harmless || s.Name != "web_search" {
		t.Errorf("got %+v", s)
	}
}

// engine serves a search engine, and gives the tool that asks it.
func engine(t *testing.T, h http.HandlerFunc) *search.Tool {
	t.Helper()
	server := httptest.NewServer(h)
	client := outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 0)
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
	return search.New(client, server.URL+"/", func(_ context.Context, owner string) (string, error) {
		if owner != "maria" {
			return "", fmt.Errorf("whose key is %s?", secret)
		}
		return secret, nil
	})
}

func run(t *testing.T, s *search.Tool, owner, args string) tool.Result {
	t.Helper()
	r, err := s.Run(t.Context(), nil, tool.Call{Owner: owner, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.Text+string(r.Details), secret) {
		t.Errorf("the key is shown: %s", r.Text)
	}
	return r
}

func TestSearch(t *testing.T) {
	s := engine(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.URL.Path != "/search" || r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("Content-Type") != "application/json" || r.URL.RawQuery != "" {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
		if want := `{"query":"go \u003cgenerics\u003e","max_results":2}`; string(body) != want {
			t.Errorf("got %s", body)
		}
		fmt.Fprintf(w, `{"query":"x","answer":null,"response_time":1.2,"results":[
			{"title":"Type\n parameters","url":"https://go.dev/a","content":"They are %s.","score":0.9,"raw_content":null},
			{"title":"B","url":"https://go.dev/b","content":""},{"title":"too many","url":"x","content":"x"}]}`, strings.Repeat("w ", 2000))
	})
	r := run(t, s, "maria", `{"query":" go <generics> ","max_results":2}`)
	if r.Failed || !strings.HasPrefix(r.Text, "1. Type parameters\n   https://go.dev/a\n   They are w w") || !strings.HasSuffix(r.Text, "w…\n\n2. B\n   https://go.dev/b") || len(r.Text) > 1200 {
		t.Errorf("got %s", r.Text)
	}
}

func TestNothing(t *testing.T) {
	s := engine(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"results":[]}`) })
	if r := run(t, s, "maria", `{"query":"x"}`); r.Failed || r.Text != `Nothing was found for "x". Try other words.` {
		t.Errorf("got %+v", r)
	}
}

func TestTrouble(t *testing.T) {
	for answer, want := range map[string]string{
		"401 bad key " + secret:             "does not accept the key",
		"403 x":                             "does not accept the key",
		"429 slow down":                     "too often",
		"432 x":                             "no more searches",
		"400 x":                             "other words",
		"500 " + secret:                     "problem of its own (status 500)",
		"503 x":                             "problem of its own (status 503)",
		"404 x":                             "status 404",
		"200 not json":                      "cannot be read",
		`200 {"results":7}`:                 "cannot be read",
		"200 " + strings.Repeat("x", 3<<20): "cannot be read",
	} {
		s := engine(t, func(w http.ResponseWriter, _ *http.Request) {
			var status int
			code, body, _ := strings.Cut(answer, " ")
			fmt.Sscan(code, &status)
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
		if r := run(t, s, "maria", `{"query":"x"}`); !r.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%.30s: got %q, want %q", answer, r.Text, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	s := engine(t, func(http.ResponseWriter, *http.Request) { t.Error("the engine was asked") })
	for args, want := range map[string]string{
		`nonsense`:                      "not valid JSON",
		`{"query":7}`:                   "query must be a string",
		`{"query":"  "}`:                "query is empty",
		`{"query":"x","max_results":0}`: "from 1 to 20",
		`{"query":"` + strings.Repeat("ä", 401) + `"}`: "401 characters",
	} {
		if r := run(t, s, "maria", args); !r.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%.40s: got %q, want %q", args, r.Text, want)
		}
	}
	if r := run(t, s, "somebody", `{"query":"x"}`); !r.Failed || !strings.Contains(r.Text, "cannot be read right now") {
		t.Errorf("got %+v", r)
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	give := func(key string) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return key, nil }
	}
	open := outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 0)
	closed := outbound.NewClient(outbound.Policy{}, 0)
	defer open.CloseIdleConnections()
	for want, s := range map[string]*search.Tool{
		"cannot be reached":  search.New(open, gone.URL, give(secret)),
		"refused to connect": search.New(closed, gone.URL, give(secret)),
		"engine cannot be":   search.New(open, gone.URL, give(secret+"\n")),
		"address of the":     search.New(open, "http://[", give(secret)),
		"no key for the":     search.New(open, gone.URL, give("")),
	} {
		if r := run(t, s, "maria", `{"query":"x"}`); !r.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("got %q, want %q", r.Text, want)
		}
	}
}

func TestCancelled(t *testing.T) {
	asked := make(chan struct{})
	s := engine(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client goes away
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if r, err := s.Run(ctx, nil, tool.Call{Owner: "maria", Args: json.RawMessage(`{"query":"x"}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", r, err)
	}
}
