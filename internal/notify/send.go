package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/outbound"
)

const (
	// attemptTime is how long a receiver may take to answer.
	attemptTime = 10 * time.Second
	// maxAnswer is how much of an answer is read, and thrown away, so that the
	// connection can be used again.
	maxAnswer = 64 << 10
	// maxProblem bounds what is kept of an error.
	maxProblem = 300
)

// send makes one attempt.
func (d *Dispatcher) send(ctx context.Context, t target, del Delivery) answer {
	begin := time.Now()
	a := d.post(ctx, t, del, begin)
	a.took = time.Since(begin)
	return a
}

func (d *Dispatcher) post(ctx context.Context, t target, del Delivery, now time.Time) answer {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(del.Body))
	if err == nil {
		err = t.sign(req.Header, del.ID, now, del.Body)
	}
	if err != nil {
		return answer{problem: "the request cannot be created"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "deckhand")
	res, err := d.client.Do(req)
	if err != nil {
		return answer{problem: Explain(err)}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	a := answer{status: res.StatusCode}
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
	case res.StatusCode >= 300 && res.StatusCode < 400:
		a.problem = fmt.Sprintf("the receiver responded with %d, and redirects are not followed: use the final URL", res.StatusCode)
	default:
		a.problem = fmt.Sprintf("the receiver responded with %d %s", res.StatusCode, http.StatusText(res.StatusCode))
		a.later = RetryAfter(res.Header.Get("Retry-After"), now)
	}
	return a
}

// Explain says why there was no answer. The address is not repeated: it may be
// a secret.
func Explain(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var blocked *outbound.BlockedError
	var dns *net.DNSError
	var timeout net.Error
	text := ""
	switch {
	case errors.As(err, &blocked):
		text = blocked.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		text = fmt.Sprintf("the receiver did not respond within %s", attemptTime)
	case errors.As(err, &dns):
		text = "the receiver's host name cannot be resolved"
	default:
		text = "the receiver cannot be reached: " + err.Error()
	}
	return clip.Bytes(text, maxProblem)
}
