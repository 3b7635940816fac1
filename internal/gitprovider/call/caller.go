package call

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/outbound"
)

const (
	maxBody = 8 << 20
	timeout = 30 * time.Second
)

// Caller calls one host with one token. It is safe for concurrent use.
type Caller struct {
	Provider string
	Site     *url.URL // base URL of the host; nil if the stored host is invalid

	client    *http.Client
	base      *url.URL // base URL of the API
	authorize func(http.Header)
	secrets   []string
	broken    error
}

// New returns a caller. standard is the provider's public host, or ""; base returns the
// base URL of the API; authorize adds the credentials and other headers to every request.
// If the host is invalid, every call returns that error.
func New(o Options, standard string, base func(site *url.URL) *url.URL, authorize func(http.Header)) *Caller {
	c := &Caller{Provider: o.Name, authorize: authorize, secrets: spellings(o.Token)}
	client := *o.Client
	client.CheckRedirect = stayHome(o.Client.CheckRedirect)
	c.client = &client
	site, err := o.Site(standard)
	if err != nil {
		c.broken = err
		return c
	}
	c.Site, c.base = site, base(site)
	return c
}

// Request is one call.
type Request struct {
	Method string // GET if empty
	Path   string // below the base URL, escaped: see Path
	Query  url.Values
	Body   any    // sent as JSON if not nil
	Accept string // application/json if empty
	// Elsewhere is the base URL for this call, if the host has a second API. It must be
	// on the same host.
	Elsewhere *url.URL
}

// Answer is the status and header of a response.
type Answer struct {
	Status int
	Header http.Header
}

// Get requests JSON. out may be nil.
func (c *Caller) Get(ctx context.Context, path string, query url.Values, out any) (Answer, error) {
	return c.Do(ctx, Request{Path: path, Query: query}, out)
}

// Post sends JSON and decodes the JSON response. out may be nil.
func (c *Caller) Post(ctx context.Context, path string, body, out any) (Answer, error) {
	return c.Do(ctx, Request{Method: http.MethodPost, Path: path, Body: body}, out)
}

// Do sends a request and decodes the JSON response into out, unless it is nil. The error
// is a *gitprovider.Error, or the context's error.
func (c *Caller) Do(ctx context.Context, r Request, out any) (Answer, error) {
	body, answer, err := c.Raw(ctx, r)
	if err != nil || out == nil {
		return answer, err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return answer, c.Fail(gitprovider.Unavailable, "")
	}
	return answer, nil
}

// Raw sends a request and returns the body.
func (c *Caller) Raw(ctx context.Context, r Request) ([]byte, Answer, error) {
	if c.broken != nil {
		return nil, Answer{}, c.broken
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.request(within, r)
	if err != nil {
		return nil, Answer{}, c.Fail(gitprovider.Refused, "the URL cannot be used")
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, Answer{}, c.lost(ctx, err)
	}
	defer res.Body.Close()
	answer := Answer{res.StatusCode, res.Header}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299: // a truncated body is good enough for the message
		return nil, answer, c.failure(answer, body)
	case err != nil:
		return nil, answer, c.lost(ctx, err)
	case len(body) > maxBody:
		return nil, answer, c.Fail(gitprovider.Unavailable, fmt.Sprintf("more than %d MiB at once", maxBody>>20))
	}
	return body, answer, nil
}

func (c *Caller) request(ctx context.Context, r Request) (*http.Request, error) {
	base := c.base
	if r.Elsewhere != nil {
		if outbound.Origin(r.Elsewhere) != outbound.Origin(c.base) {
			return nil, errors.New("another host")
		}
		base = r.Elsewhere
	}
	address := strings.TrimRight(base.String(), "/") + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if outbound.Origin(req.URL) != outbound.Origin(c.base) {
		return nil, errors.New("another host")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Deckhand")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorize(req.Header)
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	return req, nil
}

// lost returns the error for a missing or truncated response.
func (c *Caller) lost(ctx context.Context, err error) error {
	if gone := ctx.Err(); gone != nil {
		return gone
	}
	failure := c.Fail(gitprovider.Unavailable, "")
	why := ""
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		why = "There is no host of this name."
	} else if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		why = "Its certificate cannot be trusted."
	} else if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		why = "It does not speak https. If it speaks http, store the host as http://" + c.host() + "."
	} else if blocked, ok := errors.AsType[*outbound.BlockedError](err); ok {
		failure = c.Fail(gitprovider.Blocked, "") // the address is not allowed; host and token may be right
		failure.Message += " The server " + blocked.Error() + "."
	}
	if why != "" {
		failure.Message = strings.Replace(failure.Message, "Try again later.", why, 1) // retrying would not help
	}
	return failure
}

// stayHome follows redirects, but removes credentials once another host is involved, and
// never resends a body.
func stayHome(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("stopped after 10 redirects")
		}
		first, away := outbound.Origin(via[0].URL), false
		for _, r := range append(via[1:len(via):len(via)], req) {
			away = away || outbound.Origin(r.URL) != first
		}
		if away {
			if via[0].Method != http.MethodGet {
				return errors.New("a redirect leads what was sent to another host")
			}
			accept := req.Header.Get("Accept")
			clear(req.Header)
			req.Header.Set("Accept", accept)
			req.URL.User = nil
		}
		if next == nil {
			return nil
		}
		return next(req, via)
	}
}
