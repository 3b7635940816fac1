package llm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"deckhand/internal/clip"
)

// What adapters share: the same facts of HTTP, and the same manners with secrets.

// Sending is a context for one call over HTTP, and tells whether the request
// can have left: whether there ever was a connection for it.
func Sending(ctx context.Context) (context.Context, func() bool) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	return httptrace.WithClientTrace(ctx, trace), connected.Load
}

// longestWait is the longest wait that a provider is believed to mean.
const longestWait = 24 * time.Hour

// RetryAfter is how long a provider asks to wait before the next call: a number
// of milliseconds or of seconds, or a date by the provider's own clock.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return wait(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return wait(s)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return wait(at.Sub(now).Seconds())
}

// wait is a number of seconds, within reason. What is not a number is no wait.
func wait(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
}

// longestMessage is how much of a provider's words people are shown, in bytes.
const longestMessage = 2000

// CleanMessage is a message for people, without a key and of a bearable length.
func CleanMessage(message, key string) string {
	if key != "" {
		message = strings.ReplaceAll(message, key, "***")
	}
	return clip.Bytes(message, longestMessage)
}

// Forbidden is true for an address that the server's own rules refuse, which is
// no passing trouble of the network.
func Forbidden(err error) bool {
	var rules interface{ Forbidden() bool }
	return errors.As(err, &rules) && rules.Forbidden()
}

// Unreachable is the failure of a request that got no answer. It leaves out the
// address of the request, which may have a secret in it.
func Unreachable(err error) *Error {
	if errors.Is(err, ErrElsewhere) {
		return &Error{Class: ClassRequest, Message: ErrElsewhere.Error()}
	}
	var credentials interface{ Refused() bool }
	if errors.As(err, &credentials) && credentials.Refused() {
		return &Error{Class: ClassAuth, Message: reason(err)}
	}
	return &Error{Class: ClassNetwork, Message: "no connection to the provider: " + reason(err), Final: Forbidden(err)}
}

// reason is an error of a request without its address.
func reason(err error) string {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return err.Error()
}
