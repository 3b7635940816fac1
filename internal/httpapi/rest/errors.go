package rest

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
)

// Family is the shape of a route's errors: clients of the conversation routes
// expect another body than the rest.
type Family int

const (
	Plain Family = iota
	Conversation
	Bare // just the sentence, as a JSON string
)

// Fault is an error that knows its answer.
type Fault struct {
	Status int
	Code   string
	Msg    string
	// Body replaces the family's shape where the contract has another.
	Body   any
	Header http.Header
}

// Error implements error.
func (f *Fault) Error() string { return f.Msg }

// Fail makes a Fault.
func Fail(status int, code, msg string) *Fault { return &Fault{Status: status, Code: code, Msg: msg} }

// Unauthorized refuses a request without a valid key.
func Unauthorized() *Fault {
	return &Fault{Status: http.StatusUnauthorized, Code: api.CodeUnauthorized, Msg: "Unauthorized", Body: api.Unauthorized{Detail: "Unauthorized"}}
}

// Write sends the fault in the family's shape.
func (f *Fault) Write(w http.ResponseWriter, fam Family) {
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	body, msg := f.Body, strings.ToValidUTF8(f.Msg, "\ufffd") // it may quote what the client sent
	switch {
	case body != nil:
	case fam == Conversation:
		body = api.ConversationError{Status: "error", Message: msg, MsgID: f.Code}
	case fam == Bare:
		body = msg
	default:
		body = api.Problem{Error: msg, MsgID: f.Code}
	}
	WriteJSON(w, f.Status, body)
}

// TooMany refuses a request that is over a limit, and says when to try again.
func TooMany(a access.Decision, msg string) *Fault {
	f := Later(api.CodeRateLimited, msg, a.RetryAfter)
	f.Header["Ratelimit-Limit"] = []string{strconv.FormatInt(int64(a.Limit), 10)}
	f.Header["Ratelimit-Remaining"] = []string{strconv.FormatInt(int64(a.Remaining), 10)}
	f.Header["Ratelimit-Reset"] = []string{seconds(a.Reset)}
	return f
}

// Later refuses a request that the server has no room for now, and says when to try again.
func Later(code, msg string, after time.Duration) *Fault {
	f := Fail(http.StatusTooManyRequests, code, msg+" Try again in "+seconds(after)+" s.")
	f.Header = http.Header{"Retry-After": {seconds(after)}}
	return f
}

// unavailableFor is the time after which clients should retry a request that the server could not answer.
const unavailableFor = 5 * time.Second

// Unavailable returns a Fault for a request that the server cannot answer now, with Retry-After.
func Unavailable(msg string) *Fault {
	f := Fail(http.StatusServiceUnavailable, api.CodeUnavailable, msg)
	f.Header = http.Header{"Retry-After": {seconds(unavailableFor)}}
	return f
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(max(d.Seconds(), 0))), 10)
}
