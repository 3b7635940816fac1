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
	"unicode"
	"unicode/utf8"

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
	return clip.Bytes(withoutKey(message, key), longestMessage)
}

// shortKey is the length below which a key is masked only as a separate word. If a short key were masked inside words, the
// gaps would reveal it.
const shortKey = 8

func withoutKey(message, key string) string {
	if len(key) >= shortKey {
		return strings.ReplaceAll(message, key, "***")
	}
	inWord := func(s string, size func(string) (rune, int)) bool {
		r, _ := size(s)
		return s != "" && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	var out strings.Builder
	for key != "" {
		before, after, found := strings.Cut(message, key)
		if !found {
			break
		}
		out.WriteString(before)
		if inWord(before, utf8.DecodeLastRuneInString) || inWord(after, utf8.DecodeRuneInString) {
			out.WriteString(key)
		} else {
			out.WriteString("***")
		}
		message = after
	}
	return out.String() + message
}

// Forbidden is true for an address that the server's own rules refuse, which is
// no passing trouble of the network.
func Forbidden(err error) bool {
	var rules interface{ Forbidden() bool }
	return errors.As(err, &rules) && rules.Forbidden()
}

// Unreachable is the failure of a request that got no answer. Of the address of the request,
// it has the host only: the rest may have a secret in it.
func Unreachable(err error) *Error {
	if errors.Is(err, ErrElsewhere) {
		return &Error{Class: ClassRequest, Message: ErrElsewhere.Error()}
	}
	var credentials interface{ Refused() bool }
	if errors.As(err, &credentials) && credentials.Refused() {
		return &Error{Class: ClassAuth, Message: reason(err)}
	}
	return &Error{Class: ClassNetwork, Message: "no connection to the provider" + host(err) + ": " + reason(err), Final: Forbidden(err)}
}

// host returns the host of a failed request, "" if it is unknown.
func host(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		if u, err := url.Parse(failed.URL); err == nil && u.Host != "" {
			return " at " + u.Host
		}
	}
	return ""
}

// reason returns the text of a request's error without the URL.
func reason(err error) string {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return err.Error()
}
