package fetch_test

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/outbound"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
	"deckhand/internal/secret"
	"deckhand/internal/tool"
	"deckhand/internal/tool/fetch"
	"deckhand/internal/tool/tooltest"
	"deckhand/internal/v0/form"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpec(t *testing.T) {
	tooltest.Spec(t, fetch.New(nil).Spec(),
		[]string{`{"url":"https://example.com"}`, `{"url":"x","max_length":5,"start_index":0,"raw":true}`},
		[]string{`{}`, `{"url":1}`, `{"url":"x","max_length":0}`, `{"url":"x","start_index":-1}`})
	if s := fetch.New(nil).Spec(); !s.ReadOnly || s.Harmless || s.Name != "fetch" {
		t.Errorf("got %+v", s)
	}
}

// web is a server, and a tool that reaches it through the real proxy.
type web struct {
	*testing.T
	server *httptest.Server
	proxy  *egress.Proxy
	ledger ledgertest.Memory
	tool   *fetch.Tool
}

// newWeb serves pages by their paths, to a conversation with this policy; a
// policy without a mode allows the server.
func newWeb(t *testing.T, secure bool, policy egress.Policy, pages map[string]http.HandlerFunc) *web {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range pages {
		mux.HandleFunc(path, h)
	}
	w := &web{T: t, server: httptest.NewUnstartedServer(mux)}
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of clients that do not trust it
	if secure {
		w.server.StartTLS()
	} else {
		w.server.Start()
	}
	t.Cleanup(w.server.Close)
	host := w.host()
	allow, err := outbound.ParseAllow(host)
	if err != nil {
		t.Fatal(err)
	}
	if policy.Mode == "" {
		policy = egress.Policy{Mode: egress.Allowlist, Allow: []string{host}}
	}
	w.proxy = egress.New(egress.Config{
		Policy:       func(context.Context, string) (egress.Policy, error) { return policy, nil },
		AllowPrivate: allow, Ledger: &w.ledger,
	})
	t.Cleanup(func() {
		if err := w.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	w.tool = fetch.New(fetch.Through(w.proxy.Serve))
	return w
}

func (w *web) host() string {
	u, err := url.Parse(w.server.URL)
	if err != nil {
		w.Fatal(err)
	}
	return u.Host
}

// run makes a call; WEB in its arguments is the server.
func (w *web) run(args string) tool.Result {
	w.Helper()
	r, err := w.tool.Run(w.Context(), nil, tool.Call{ID: "7-call", Session: "box", Args: json.RawMessage(strings.ReplaceAll(args, "WEB", w.server.URL))})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// gives fails unless the page's text is this.
func (w *web) gives(path, want string) {
	w.Helper()
	r := w.run(`{"url":"WEB` + path + `"}`)
	if full := "Contents of " + w.server.URL + path + ":\n\n" + want; r.Failed || r.Text != full {
		w.Errorf("%s: got %q, want %q", path, r.Text, full)
	}
	if want := `{"url":"` + w.server.URL + path + `"}`; string(r.Details) != want {
		w.Errorf("got %s, want %s", r.Details, want)
	}
}

func (w *web) fails(args, want string) {
	w.Helper()
	r := w.run(args)
	if !r.Failed || !strings.Contains(r.Text, want) {
		w.Errorf("%s: got %q, want a failure with %q", args, r.Text, want)
	}
	var d form.BrowseDetails
	if len(r.Details) > 0 && (json.Unmarshal(r.Details, &d) != nil || d.URL == "" || !d.Error) {
		w.Errorf("%s: got details %s", args, r.Details)
	}
}

func text(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		io.WriteString(w, body)
	}
}

func TestKinds(t *testing.T) {
	long := strings.Repeat("What the page is about. ", 20)
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{
		"/json":    text("application/json; charset=utf-8", `{"a": [1, 2]}`),
		"/problem": text("application/problem+json", `{"title":"x"}`),
		"/plain":   text("text/plain", "caf\xc3\xa9"),
		"/latin":   text("text/plain; charset=iso-8859-1", "caf\xe9"),
		"/bom":     text("text/plain", "\xef\xbb\xbfx"),
		"/none":    text("", "just text"),
		"/guess":   text("", "<!doctype html><p>guessed</p>"),
		"/octets":  text("application/octet-stream", "readable all the same"),
		"/empty":   text("text/plain", ""),
		"/meta":    text("text/html", "<meta charset=shift_jis><p>\x93\xfa\x96\x7b</p>"),
		"/broken":  text("text/plain; charset=utf-8", "a\xffb"),
		"/html": text("text/html", `<html><head><title> The
			title </title><style>p{}</style></head><body><nav><a href="/menu">Menu</a></nav><!-- comment --><script>alert(1)</script>
			<h2>Part</h2><p>Some <b>bold</b> <a href="sub/x?a=1">link</a>.</p><img alt="pic" src="data:image/png;base64,AAAA">
			<ul><li>one</li><li>two</li></ul><table><tr><th>k</th></tr><tr><td>v</td></tr></table><pre><code class="language-go">x := 1
</code></pre><footer>Imprint</footer></body></html>`),
		"/main":  text("text/html", `<body><div>Advertisement</div><main><h1>Head</h1><p>`+long+`</p></main></body>`),
		"/short": text("text/html", `<body><div>Text</div><main>x</main></body>`),
		"/frame": text("text/html", `<body><header><p>All there is</p></header></body>`),
	})
	w.gives("/json", `{"a": [1, 2]}`)
	w.gives("/problem", `{"title":"x"}`)
	w.gives("/plain", "café")
	w.gives("/latin", "café")
	w.gives("/bom", "x")
	w.gives("/none", "just text")
	w.gives("/guess", "guessed")
	w.gives("/octets", "readable all the same")
	w.gives("/meta", "日本")
	w.gives("/broken", "a\uFFFDb")
	w.gives("/main", "# Head\n\n"+strings.TrimSpace(long))
	w.gives("/short", "Text\n\nx")
	w.gives("/frame", "All there is")
	w.gives("/html", "# The title\n\n## Part\n\nSome **bold** [link]("+w.server.URL+"/sub/x?a=1).\n\n- one\n- two\n\n| k |\n|---|\n| v |\n\n```go\nx := 1\n```")
	if r := w.run(`{"url":"WEB/guess","raw":true}`); !strings.HasSuffix(r.Text, "\n\n<!doctype html><p>guessed</p>") {
		t.Errorf("got %q", r.Text)
	}
	if r := w.run(`{"url":"WEB/empty#part"}`); r.Failed || r.Text != w.server.URL+"/empty is empty." {
		t.Errorf("got %q", r.Text)
	}
}

func TestParts(t *testing.T) {
	whole := strings.Repeat("äbcdefghij", 2500)
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{
		"/long": text("text/plain; charset=utf-8", whole),
		"/huge": text("text/plain", strings.Repeat("x", 6<<20)),
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = ' '
			}
			for range 20 {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
			z.Close()
		},
	})
	var got strings.Builder
	for start := 0; start < 25_000; {
		r := w.run(fmt.Sprintf(`{"url":"WEB/long","start_index":%d,"max_length":9999}`, start))
		_, rest, _ := strings.Cut(r.Text, ":\n\n")
		part, note, more := strings.Cut(rest, "\n\n[")
		got.WriteString(part)
		start += len([]rune(part))
		if more != (start < 25_000) || more && !strings.Contains(note, fmt.Sprintf("start_index %d for more", start)) {
			t.Fatalf("got %q at %d", note, start)
		}
	}
	if got.String() != whole {
		t.Error("the parts are not the whole")
	}
	if r := w.run(`{"url":"WEB/long"}`); len([]rune(r.Text)) > 20_300 || !strings.Contains(r.Text, "Characters 0 to 20000 of 25000") {
		t.Errorf("got %d bytes", len(r.Text))
	}
	w.fails(`{"url":"WEB/long","start_index":25000}`, "has 25000 characters")
	for _, path := range []string{"huge", "bomb"} {
		r := w.run(`{"url":"WEB/` + path + `","start_index":5242870}`)
		if r.Failed || !strings.Contains(r.Text, "longer than 5 MB") {
			t.Errorf("%s: got %.300q", path, r.Text)
		}
	}
}

// Calls for parts of a page show no part of a secret, however small the parts are.
func TestPartsOfASecret(t *testing.T) {
	const hidden = "tok_9fK2mQ7xW4vB8nZ1"
	masker := secret.NewMasker(hidden)
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{
		"/page": text("text/plain", "before "+hidden+" after"),
		"/huge": text("text/plain", strings.Repeat("x", 5<<20-11)+" "+hidden),
	})
	for _, length := range []int{1, 5, 17} {
		var got strings.Builder
		for start := 0; start < 60; start += length {
			r, err := w.tool.Run(t.Context(), nil, tool.Call{ID: "7-call", Session: "box", Mask: masker.String,
				Args: json.RawMessage(fmt.Sprintf(`{"url":"%s/page","start_index":%d,"max_length":%d}`, w.server.URL, start, length))})
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(masker.String(r.Text), ":\n\n")
			part, _, more := strings.Cut(rest, "\n\n[")
			got.WriteString(strings.TrimSpace(part))
			if !more {
				break
			}
		}
		if !strings.HasPrefix(got.String(), "before") || !strings.HasSuffix(got.String(), "after") || strings.Contains(got.String(), hidden[:4]) {
			t.Errorf("in parts of %d: %s", length, got.String())
		}
	}
	r, err := w.tool.Run(t.Context(), nil, tool.Call{ID: "7-call", Session: "box", Mask: masker.String,
		Args: json.RawMessage(`{"url":"` + w.server.URL + `/huge","start_index":5242860}`)})
	if err != nil || strings.Contains(r.Text, hidden[:4]) || !strings.Contains(r.Text, "longer than 5 MB") {
		t.Errorf("at the end of a long page: %q, %v", r.Text, err)
	}
}

func TestRefused(t *testing.T) {
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{
		"/png":     text("image/png", "\x89PNG"),
		"/zip":     text("", "PK\x03\x04\x00"),
		"/lies":    text("text/plain", "a\x00b"),
		"/missing": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", http.StatusNotFound) },
		"/image404": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.WriteHeader(http.StatusTeapot)
		},
		"/loop": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) },
		"/file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"/elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example/x", http.StatusFound)
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	})
	for args, want := range map[string]string{
		`nonsense`:                                  "not valid JSON",
		`{"url":""}`:                                "an address such as",
		`{"url":"ftp://example.com/"}`:              "only http and https",
		`{"url":"file:///etc/passwd"}`:              "only http and https",
		`{"url":"https://"}`:                        "names no host",
		`{"url":"https://me:secret@example.com/"}`:  "password",
		`{"url":"http://[::1"}`:                     "not a valid address",
		`{"url":"WEB/","max_length":0}`:             "max_length",
		`{"url":"WEB/","max_length":30001}`:         "max_length",
		`{"url":"WEB/","start_index":-1}`:           "start_index",
		`{"url":"WEB/png"}`:                         "content type image/png is not text",
		`{"url":"WEB/zip"}`:                         "content type application/zip is not text",
		`{"url":"WEB/lies"}`:                        "binary",
		`{"url":"WEB/missing"}`:                     "answered 404 Not Found.\n\nno such page",
		`{"url":"WEB/image404"}`:                    "answered 418",
		`{"url":"WEB/loop"}`:                        "redirects more than 5 times",
		`{"url":"WEB/file"}`:                        "redirects to an address that is not fetched",
		`{"url":"WEB/elsewhere"}`:                   "http://other.example/x answered 403 Forbidden.\n\ndeckhand: egress policy",
		`{"url":"WEB/cut"}`:                         "cannot be fetched",
		`{"url":"https://other.example/"}`:          "egress policy \"allowlist\" does not",
		`{"url":"other.example"}`:                   "https://other.example cannot be fetched",
		`{"url":"http://169.254.169.254/metadata"}`: "egress policy",
	} {
		w.fails(args, want)
	}
	if r := w.run(`{"url":"https://me:secret@example.com/"}`); r.Details != nil {
		t.Errorf("got %s", r.Details)
	}
}

// Where the policy allows a page, it is still not the way into the server's own network.
func TestOwnNetwork(t *testing.T) {
	w := newWeb(t, false, egress.Policy{Mode: egress.Open}, map[string]http.HandlerFunc{})
	other := httptest.NewServer(text("text/plain", "internal"))
	defer other.Close()
	for _, at := range []string{other.URL, strings.Replace(other.URL, "http", "https", 1), "http://169.254.169.254/"} {
		r := w.run(`{"url":"` + at + `"}`)
		if !r.Failed || strings.Contains(r.Text, "internal") || !strings.Contains(r.Text, "address") {
			t.Errorf("%s: got %q", at, r.Text)
		}
	}
}

func TestRedirectIsFollowed(t *testing.T) {
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{
		"/from": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/to", http.StatusMovedPermanently) },
		"/to":   text("text/plain", "here"),
	})
	r := w.run(`{"url":"WEB/from"}`)
	if r.Text != "Contents of "+w.server.URL+"/to:\n\nhere" || string(r.Details) != `{"url":"`+w.server.URL+`/to"}` {
		t.Errorf("got %q, %s", r.Text, r.Details)
	}
	entries, err := w.proxy.Entries(t.Context(), "box", 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Call != "7-call" || entries[0].Verdict != egress.Allowed || entries[0].Method != "GET" {
		t.Errorf("got %+v, %v", entries, err)
	}
}

func TestTLS(t *testing.T) {
	w := newWeb(t, true, egress.Policy{}, map[string]http.HandlerFunc{"/x": text("text/plain", "sealed")})
	w.fails(`{"url":"WEB/x"}`, "certificate is not trusted")
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	w.tool.Trust(roots)
	w.gives("/x", "sealed")
	if err := w.proxy.Close(); err != nil { // which waits for the tunnels to be written down
		t.Fatal(err)
	}
	entries, err := w.ledger.Entries(t.Context(), "box", 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Method != "CONNECT" || entries[0].Call != "7-call" {
		t.Errorf("got %+v, %v", entries, err)
	}
}

func TestSlow(t *testing.T) {
	asked, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	w := newWeb(t, false, egress.Policy{}, map[string]http.HandlerFunc{"/slow": func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if r, err := w.tool.Run(ctx, nil, tool.Call{Session: "box", Args: json.RawMessage(`{"url":"` + w.server.URL + `/slow"}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", r, err)
	}
	<-ended // the connection to the host is closed
	w.tool.Hurry(time.Millisecond)
	w.fails(`{"url":"WEB/slow"}`, "took too long")
}

func TestProxyGone(t *testing.T) {
	w := newWeb(t, false, egress.Policy{}, nil)
	if err := w.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	w.fails(`{"url":"WEB/x"}`, "cannot be fetched")
}
