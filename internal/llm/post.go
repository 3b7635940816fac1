package llm

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"deckhand/internal/outbound"
)

// ErrElsewhere is why a redirect to another origin is not followed.
var ErrElsewhere = errors.New("the server redirects to another host, but the key belongs to this one; use the URL of the other host")

// Post sends JSON to a provider, once: the loop decides about another attempt,
// because each one is recorded and paid for. The body is sent from where its parts are,
// perhaps until after the response. header may be nil and wins over the defaults. The response has any status, and a body to close. Redirects to another
// origin end with ErrElsewhere: the key and the conversation are meant for this one.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body [][]byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	for _, part := range body {
		req.ContentLength += int64(len(part))
	}
	req.GetBody = func() (io.ReadCloser, error) {
		parts := net.Buffers(slices.Clone(body)) // reading takes them off
		return io.NopCloser(&parts), nil
	}
	req.Body, _ = req.GetBody()
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"Deckhand"}}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if client == nil {
		client = http.DefaultClient
	}
	staying := *client
	staying.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case outbound.Origin(next.URL) != outbound.Origin(req.URL):
			return ErrElsewhere
		case client.CheckRedirect != nil:
			return client.CheckRedirect(next, via)
		case len(via) >= 10: // as net/http does by itself
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return staying.Do(req)
}

// ContainsAny reports whether an error text contains one of the wordings by which an
// adapter classifies it.
func ContainsAny(text string, wordings ...string) bool {
	return slices.ContainsFunc(wordings, func(w string) bool { return strings.Contains(text, w) })
}
