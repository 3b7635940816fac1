package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"

	"deckhand/internal/gitgate"
)

// passage is a request for the gate that may go on to its host.
type passage struct {
	gitgate.Request
	grant gitgate.Grant
	// refused is true if the host rejected the credentials, so that the request was repeated
	// without them.
	refused bool
}

// passageKey is where a request's context holds its passage.
type passageKey struct{}

func passageOf(ctx context.Context) *passage { return ctx.Value(passageKey{}).(*passage) }

// admit decides on a request for the gate. Its real destination is returned even if it is
// refused.
func (p *Proxy) admit(r *http.Request, id string, port uint16) (*passage, host, uint16, error) {
	gate := host{name: gitgate.Name}
	switch {
	case p.git == nil:
		return nil, gate, port, misuse("there is no " + gitgate.Name + " here")
	case r.Method == http.MethodConnect || port != 80:
		return nil, gate, port, misuse("ask " + gitgate.Name + " in plain http, on port 80; the connection does not leave this machine")
	case r.URL.User != nil:
		return nil, gate, port, misuse("the stored token is added to what is asked of " + gitgate.Name + "; an address with a user in it is not for it")
	}
	if r.Method == http.MethodGet && r.ContentLength != 0 {
		return nil, gate, port, misuse("git sends nothing where it asks for something")
	}
	asked, err := gitgate.Parse(r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	if err != nil {
		return nil, gate, port, misuse(err.Error())
	}
	h, err := parseHost(asked.Site.Hostname())
	if err != nil {
		return nil, gate, port, misuse(err.Error())
	}
	if port, err = parsePort(asked.Site.Port()); err != nil {
		return nil, gate, port, misuse(err.Error())
	}
	pass := &passage{Request: asked}
	pass.grant, err = p.git(r.Context(), id, asked.Site)
	switch {
	case errors.Is(err, gitgate.ErrNoToken):
		return nil, h, port, refuse(fmt.Sprintf("no token is stored for %s; store one in the settings, or start a new shell to go there without one", asked.Site))
	case err != nil:
		return nil, h, port, &refusal{http.StatusServiceUnavailable, Failed, "the stored token cannot be read right now; try again later", "the stored token cannot be read: " + err.Error()}
	case asked.Write && !pass.grant.MayWrite(asked.Repository):
		return nil, h, port, pass.foreign()
	}
	return pass, h, port, nil
}

// foreign refuses to change a repository that the conversation is not about.
func (p *passage) foreign() *refusal {
	why := "this conversation is about another repository; " + p.Repository + " at " + p.Site.String() + " can be read and not be pushed to"
	if p.grant.Own != "" {
		why = "this conversation can push to " + p.grant.Own + " and to no other repository, so not to " + p.Repository
	}
	return refuse(why)
}

// String is what the ledger says of it.
func (p *passage) String() string {
	verb := "read"
	if p.Write {
		verb = "write"
	}
	return storable("git: "+verb+" "+p.Repository, 300)
}

// gated serves a request that was admitted and permitted.
func (p *Proxy) gated(w http.ResponseWriter, r *http.Request, e *exchange, pass *passage) {
	if r.Body != nil {
		r.Body = &upload{r.Body, e}
	}
	if err := pass.inspect(r); err != nil {
		why := explain(err, e.host, e.port)
		e.note(why.verdict, why.reason)
		why.answer(w, r)
		return
	}
	e.describe(pass.String())
	w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
	ctx := context.WithValue(context.WithValue(e.ctx, exchangeKey{}, e), passageKey{}, pass)
	p.gateway.ServeHTTP(w, r.WithContext(ctx))
}

// inspect reads the body where it says what is asked.
func (p *passage) inspect(r *http.Request) error {
	switch p.Kind {
	case gitgate.Push, gitgate.Batch, gitgate.Locks, gitgate.Confirm:
		if r.Header.Get("Content-Encoding") != "" {
			return misuse("pushes and requests of LFS are not compressed")
		}
	}
	switch p.Kind {
	case gitgate.Push:
		return inspectPush(r)
	case gitgate.Batch:
		return p.inspectBatch(r)
	}
	return nil
}

// inspectPush reads the commands before the commits, and puts them back.
func inspectPush(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	head, err := gitgate.ReadPush(r.Body)
	if wrong, ok := errors.AsType[gitgate.PushError](err); ok {
		return misuse(wrong.Error())
	}
	if err != nil {
		return err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	return nil
}

func (p *passage) inspectBatch(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, gitgate.MaxBatch+1))
	switch {
	case err != nil:
		return err
	case len(body) > gitgate.MaxBatch:
		return misuse("this asks for too many LFS objects at once")
	}
	clean, write, err := gitgate.ReadBatch(body)
	if err != nil {
		return misuse(err.Error())
	}
	if p.Write = write; write && !p.grant.MayWrite(p.Repository) {
		return p.foreign()
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(clean)), int64(len(clean))
	return nil
}

// gatekeeper is forwarder for requests that get a token on their way.
func (p *Proxy) gatekeeper() *httputil.ReverseProxy {
	g := *p.forward
	g.Rewrite, g.Transport, g.ModifyResponse = authorizable, knock{p}, p.returned
	return &g
}

// authorizable makes the request that is sent to the host, all but the token.
// Nothing of the client's is in it that could mean something to the host beside
// the token, such as a cookie or the host's own header for tokens.
func authorizable(pr *httputil.ProxyRequest) {
	pass := passageOf(pr.In.Context())
	in := pr.In.Header
	pr.Out.URL = pass.URL()
	pr.Out.Host = pass.Site.Host
	pr.Out.Header = http.Header{"Accept": {"*/*"}, "User-Agent": {"git/deckhand"}}
	pr.Out.Trailer = nil
	keep := func(names ...string) {
		for _, name := range names {
			if v := in.Get(name); v != "" && len(v) <= 300 {
				pr.Out.Header.Set(name, v)
			}
		}
	}
	set := func(sent, wanted string) {
		pr.Out.Header.Set("Accept", wanted)
		if pass.Method != http.MethodGet {
			pr.Out.Header.Set("Content-Type", sent)
		}
	}
	keep("User-Agent", "Accept-Language", "Git-Protocol", "Expect")
	switch pass.Kind {
	case gitgate.Refs:
		if !pass.Write { // what a push begins with is looked into on its way back
			keep("Accept-Encoding")
		}
	case gitgate.Fetch, gitgate.Push:
		keep("Accept-Encoding", "Content-Encoding")
		set("application/x-"+pass.Service+"-request", "application/x-"+pass.Service+"-result")
	case gitgate.Object:
		keep("Accept-Encoding", "Range")
		set("application/octet-stream", "*/*")
	default: // they are looked into on their way back
		set(lfsType, lfsType)
	}
	pr.Out = exchangeOf(pr.In.Context()).counting(pr.Out)
}

const lfsType = "application/vnd.git-lfs+json"

// describe says what the exchange is about, for the ledger.
func (e *exchange) describe(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.what = what
}

// tale is what the ledger says of an exchange that is over: what it was about,
// and what became of it.
func (e *exchange) tale() string {
	return strings.Trim(e.what+": "+e.reason, ": ")
}
