// Package fetch is the tool that reads a page of the web.
//
// The request is the server's, but it goes through the proxy that is the way out
// of sandboxes: the policy of the conversation decides about it, and about each
// redirect, and it stands in the same ledger as what the shell asked for. So no
// sandbox has to be started to read a page, and reading one is no way around the
// policy.
package fetch

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
)

//go:embed fetch.md
var description string

//go:embed schema.json
var schema []byte

// Name is the tool's.
const Name = "fetch"

const (
	// maxBody is how much of a page is read, after decompression.
	maxBody = 5 << 20
	// maxRedirects is how often a page may send us elsewhere.
	maxRedirects = 5
	// timeout is how long a page may take.
	timeout = 30 * time.Second
	// usualLength and maxLength are how many characters are shown at once. What is
	// longer would be cut on its way to the model.
	usualLength, maxLength = 20_000, 30_000
	// maxError is how much is shown of a page that says what went wrong.
	maxError = 2000
)

// Dial connects to the proxy that is the way out of a session's sandbox, for a
// call. The connection speaks HTTP, as programs speak to a proxy.
type Dial func(ctx context.Context, session, call string) (net.Conn, error)

// Through dials by handing the other end of a pipe to out.
func Through(out sandbox.Outward) Dial {
	return func(ctx context.Context, session, call string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go out(context.WithoutCancel(ctx), session, call, theirs)
		return ours, nil
	}
}

// Tool implements tool.Tool.
type Tool struct {
	dial    Dial
	tls     *tls.Config // nil but for tests
	timeout time.Duration
}

// New makes the tool.
func New(dial Dial) *Tool { return &Tool{dial: dial, timeout: timeout} }

// Spec implements tool.Tool.
func (*Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, ReadOnly: true}
}

type args struct {
	URL        string `json:"url"`
	MaxLength  *int   `json:"max_length"`
	StartIndex int    `json:"start_index"`
	Raw        bool   `json:"raw"`
}

// details are kept with the result, under the names that clients know.
type details struct {
	URL   string `json:"url,omitempty"`
	Error bool   `json:"error,omitempty"`
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	length := usualLength
	if a.MaxLength != nil {
		length = *a.MaxLength
	}
	if length < 1 || length > maxLength {
		return tool.Failf("max_length is a number of characters from 1 to %d.", maxLength), nil
	}
	if a.StartIndex < 0 {
		return tool.Failf("start_index is a number of characters, 0 or more."), nil
	}
	address, err := parse(a.URL)
	if err != nil {
		return tool.Failf("%q cannot be fetched: %v.", a.URL, err), nil
	}
	p, err := t.get(ctx, call, address, a.Raw)
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if p.url == "" {
		p.url = address.String()
	}
	if p.cut {
		p.text += "…"
	}
	if call.Mask != nil {
		p.text = call.Mask(p.text)
	}
	var r tool.Result
	switch {
	case err != nil:
		r = tool.Failf("%s cannot be fetched: %v.", p.url, err)
	case p.status >= 400:
		r = tool.Failf("%s answered %d %s.\n\n%s", p.url, p.status, http.StatusText(p.status), clip.Runes(p.text, maxError))
	default:
		r = p.part(a.StartIndex, length)
	}
	r.Text = strings.TrimSpace(r.Text)
	r.Details, err = json.Marshal(details{p.url, r.Failed})
	return r, err
}

// parse reads an address. One without a scheme is what people type.
func parse(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("an address such as https://example.com/page is needed")
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it is not a valid address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("only http and https can be fetched; use the shell for files")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errors.New("an address with a password in it is not fetched")
	}
	u.Fragment = ""
	return u, nil
}

// page is what was fetched.
type page struct {
	url    string // after redirects
	status int
	text   string
	cut    bool // there was more than maxBody
}

// get fetches a page.
func (t *Tool) get(ctx context.Context, call tool.Call, address *url.URL, raw bool) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	transport := t.transport(call)
	defer transport.CloseIdleConnections()
	last := address
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		}
		to, err := parse(r.URL.String())
		if err != nil {
			return fmt.Errorf("it redirects to an address that is not fetched: %w", err)
		}
		last = to
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return page{}, errors.New("it is not a valid address")
	}
	request.Header.Set("User-Agent", "Deckhand/1.0 (fetch tool)")
	request.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5")
	answer, err := client.Do(request)
	if err != nil {
		return page{url: last.String()}, explain(ctx, err)
	}
	defer answer.Body.Close()
	p := page{url: last.String(), status: answer.StatusCode}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil {
		return p, explain(ctx, err)
	}
	if len(body) > maxBody {
		body, p.cut = body[:maxBody], true
	}
	kind := answer.Header.Get("Content-Type")
	if base, _, err := mime.ParseMediaType(kind); err != nil || base == "application/octet-stream" {
		kind = http.DetectContentType(body)
	}
	p.text, err = read(body, kind, last, raw)
	if err != nil && p.status >= 400 { // the status says enough
		return p, nil
	}
	return p, err
}

// transport speaks through the proxy, on connections that belong to one call.
func (t *Tool) transport(call tool.Call) *http.Transport {
	one := new(http.Protocols)
	one.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "egress.invalid:3128"}), // never looked up: dial knows the way
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return t.dial(ctx, call.Session, call.ID)
		},
		TLSClientConfig:        t.tls,
		Protocols:              one,
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// explain puts into words why a page could not be fetched. What the proxy has to
// say is in the error.
func explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("it took too long to answer")
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var unknown *tls.CertificateVerificationError
	if errors.As(err, &unknown) {
		return fmt.Errorf("its certificate is not trusted: %w", unknown.Err)
	}
	return errors.New(strings.TrimSuffix(strings.TrimPrefix(clip.Runes(err.Error(), 500), "deckhand: "), "."))
}
