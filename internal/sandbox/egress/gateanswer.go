package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/gitgate"
)

// knock sends a request with the credentials that the host takes. They are
// tried one after the other, and the last is none: a token that has run out
// does not keep public repositories from being read.
type knock struct{ p *Proxy }

// maxReplay is how much of a request is kept to be sent again. It is what git
// sends at once, and more than a fetch needs.
const maxReplay = 1 << 20

func (k knock) RoundTrip(r *http.Request) (*http.Response, error) {
	pass, l := passageOf(r.Context()), exchangeOf(r.Context()).line
	tries := make([]string, 0, 3)
	for _, c := range pass.grant.Credentials {
		tries = append(tries, c.Reveal())
	}
	if !pass.Write {
		tries = append(tries, "")
	}
	again, err := replay(r, pass)
	if err != nil {
		return nil, err
	}
	if l.taken == nil { // requests of a line come one after the other
		l.taken = map[gitgate.Site]int{}
	}
	for i := min(l.taken[pass.Site], len(tries)-1); ; i++ {
		out := r.Clone(r.Context())
		if again != nil {
			out.Body = again()
		}
		if tries[i] != "" {
			out.Header.Set("Authorization", tries[i])
		}
		resp, err := k.transport(l).RoundTrip(out)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized {
			l.taken[pass.Site] = i
			return resp, nil
		}
		if pass.refused = true; again == nil || i+1 == len(tries) {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, bufferSize)
		resp.Body.Close()
	}
}

// replay makes the body of a request anew. It is nil if the body is sent only
// once: a push is as large as it likes, and asks for the commits first, which
// shows what the host takes.
func replay(r *http.Request, pass *passage) (func() io.ReadCloser, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() io.ReadCloser { return http.NoBody }, nil
	}
	if pass.Kind == gitgate.Push || pass.Kind == gitgate.Object {
		return nil, nil
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, maxReplay+1))
	if err != nil {
		return nil, err
	}
	if len(head) > maxReplay {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
		return nil, nil
	}
	r.ContentLength = int64(len(head))
	return func() io.ReadCloser { return io.NopCloser(bytes.NewReader(head)) }, nil
}

// transport is the line's own. It is another one than for plain requests, whose
// connections a client could have said something on.
func (k knock) transport(l *line) *http.Transport {
	if l.gate == nil {
		one := new(http.Protocols)
		one.SetHTTP1(true)
		l.gate = &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := k.p.dial(ctx, network, address)
				if c, ok := conn.(*counted); ok {
					c.by.Store(exchangeOf(ctx)) // TLS begins before the request has the connection
				}
				return conn, err
			},
			TLSClientConfig:        &tls.Config{RootCAs: k.p.roots},
			TLSHandshakeTimeout:    handshakeTime,
			Protocols:              one,
			DisableCompression:     true,
			ExpectContinueTimeout:  time.Second,
			IdleConnTimeout:        keptUpstream,
			MaxIdleConns:           keptPerLine,
			MaxResponseHeaderBytes: maxAnswerHead,
		}
	}
	return l.gate
}

const handshakeTime = 10 * time.Second

// answerHeaders are what a client of git needs to know. Above all it is not
// asked to log in: it has nothing to log in with.
var answerHeaders = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Content-Range", "Accept-Ranges", "Cache-Control", "Expires", "Pragma",
	"Etag", "Last-Modified", "Retry-After",
}

// returned sees the head of a host's answer before the client does.
func (p *Proxy) returned(resp *http.Response) error {
	pass := passageOf(resp.Request.Context())
	location := resp.Header.Get("Location")
	for name := range resp.Header {
		if !slices.Contains(answerHeaders, name) {
			delete(resp.Header, name)
		}
	}
	resp.Trailer = nil
	var err error
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound && pass.refused:
		return pass.closed(resp)
	case status == http.StatusSwitchingProtocols:
		return errors.New("the host changes to another protocol")
	case status >= 300 && status < 400 && location != "":
		err = pass.elsewhere(resp, location)
	case status < 200 || status >= 300:
		err = pass.rewrite(resp, maxErrorText, func(b []byte) ([]byte, error) { return []byte(pass.grant.Hide(string(b))), nil })
	default:
		err = pass.answered(resp)
	}
	if err != nil {
		return err
	}
	return arrived(resp)
}

// maxErrorText is how much of an error page a sandbox is shown.
const maxErrorText = 64 << 10

// closed says that the host does not accept the token. It is never the status for
// which git would ask for another one.
func (p *passage) closed(resp *http.Response) error {
	why := fmt.Sprintf("the stored token for %s was not accepted: it may have expired or been revoked, or has no access to %s. Store a new one in the settings", p.Site.Host, p.Repository)
	if resp.StatusCode == http.StatusForbidden && !p.refused {
		verb := "reading"
		if p.Write {
			verb = "pushing to"
		}
		why = fmt.Sprintf("%s does not allow %s %s with the stored token", p.Site.Host, verb, p.Repository)
	}
	if said := p.said(resp); said != "" {
		why += "; it says: " + said
	}
	return &refusal{http.StatusForbidden, Allowed, why, storable(why, 500)}
}

// said is what a host has to say, if it is for people.
func (p *passage) said(resp *http.Response) string {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/plain" || resp.Header.Get("Content-Encoding") != "" {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	line := clip.Line(p.grant.Hide(string(text)))
	return storable(line, 300)
}

// elsewhere passes a redirect on. The client follows it: at the same site
// through the gate again, and anywhere else on its own, without a token.
func (p *passage) elsewhere(resp *http.Response, location string) error {
	to, err := p.URL().Parse(location)
	if err != nil || to.User != nil || to.Scheme != "http" && to.Scheme != "https" {
		return &refusal{http.StatusBadGateway, Failed, p.Site.Host + " redirects to an address that cannot be followed", "a redirect that cannot be followed"}
	}
	at, _ := gitgate.Origin(&url.URL{Scheme: to.Scheme, Host: to.Host})
	address := to.String()
	if inside, ok := gitgate.Inside(p.Site, address); ok {
		address = inside
	} else if at == p.Site {
		return &refusal{http.StatusBadGateway, Failed, p.Site.Host + " redirects to a page that is not a repository: it may require a login, or the repository does not exist", "a redirect to something that is not git"}
	}
	resp.Header.Set("Location", p.grant.Hide(address))
	resp.Body.Close()
	resp.Body, resp.ContentLength = http.NoBody, 0
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length"} {
		resp.Header.Del(name)
	}
	return nil
}

// answered looks at an answer that is what was asked for, or should be.
func (p *passage) answered(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	want := map[gitgate.Kind]string{
		gitgate.Refs: "application/x-" + p.Service + "-advertisement", gitgate.Fetch: "application/x-" + p.Service + "-result",
		gitgate.Push: "application/x-" + p.Service + "-result",
	}[p.Kind]
	if want != "" && kind != want {
		return &refusal{http.StatusBadGateway, Failed, fmt.Sprintf("%s did not respond as a git server for %s: the content type is %.60q", p.Site.Host, p.Repository, kind), "not an answer of git"}
	}
	switch p.Kind {
	case gitgate.Refs:
		if p.Write {
			return hideOptions(resp)
		}
	case gitgate.Batch:
		return p.rewrite(resp, gitgate.MaxBatch, func(b []byte) ([]byte, error) { return p.grant.WriteBatch(p.Site, b) })
	case gitgate.Locks, gitgate.Confirm:
		return p.rewrite(resp, gitgate.MaxBatch, func(b []byte) ([]byte, error) { return []byte(p.grant.Hide(string(b))), nil })
	}
	return nil
}

// hideOptions changes what the host says that it can do, which is in the first
// line of many.
func hideOptions(resp *http.Response) error {
	head := make([]byte, 4096)
	n, err := io.ReadFull(resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(gitgate.HideOptions(head[:n])), resp.Body), resp.Body}
	return nil
}

// rewrite replaces the body of an answer.
func (p *passage) rewrite(resp *http.Response, limit int, change func([]byte) ([]byte, error)) error {
	unreadable := &refusal{http.StatusBadGateway, Failed, p.Site.Host + " sent an invalid response", "an answer that cannot be read"}
	if resp.Header.Get("Content-Encoding") != "" {
		return unreadable
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return err
	}
	if len(body) > limit {
		return unreadable
	}
	if body, err = change(body); err != nil {
		return unreadable
	}
	resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
