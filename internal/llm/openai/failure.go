package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/llm"
)

// maxMessage is the maximum length of a provider's message in bytes.
const maxMessage = 2000

func readSome(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, maxRefusal))
}

// classify returns the classified error of a call.
func (w wire) classify(err error, began bool) *llm.Error {
	out := &llm.Error{Began: began}
	var said refusalText
	var refused *refusal
	var late *lateError
	var address *url.Error
	var unreadable *unreadableError
	switch {
	case errors.As(err, &refused):
		said = readRefusal(refused)
		out.Class = said.class(refused.status)
		out.RetryAfter = retryAfter(refused.header)
	case errors.As(err, &late):
		said = readText(late.data)
		out.Class = said.class(said.status)
	case errors.As(err, &unreadable):
		said.message = unreadable.Error()
		out.Class = llm.ClassInternal
	case errors.As(err, &address):
		out = llm.Unreachable(err)
		out.Began, said.message = began, out.Message
	default:
		said.message = "the connection broke: " + err.Error()
		out.Class = llm.ClassNetwork
	}
	out.Message = w.clean(said.message)
	return out
}

// cut returns the error of a truncated stream.
func (w wire) cut(began bool) *llm.Error {
	return &llm.Error{Class: llm.ClassNetwork, Began: began, Message: "the reply ended early"}
}

// clean removes secrets from a message and shortens it.
func (w wire) clean(message string) string {
	for _, s := range w.secrets {
		message = strings.ReplaceAll(message, s, "***")
	}
	return clip.Bytes(message, maxMessage)
}

// refusalText is the content of an error, in any format.
type refusalText struct {
	message string
	unshown string // what the answer says in no shape that a model's server has
	code    string
	kind    string
	status  int // if the text itself names one
}

// readRefusal reads an answer that is not a stream.
func readRefusal(r *refusal) refusalText {
	said := readText(r.body)
	switch {
	case said.message != "":
	case strings.HasPrefix(r.header.Get("Content-Type"), "text/html"):
		said.message = fmt.Sprintf("the base URL returns a web page (HTTP %d), not a model response", r.status)
		if r.status < 300 { // a wrong URL; waiting does not help
			said.kind = "invalid_request"
		}
	case r.status < 300:
		said.message = "the server did not stream its response"
	default:
		said.message = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.status, http.StatusText(r.status)))
		if !json.Valid(r.body) { // used to classify, but not shown: the URL may not be that of a model
			said.unshown = string(r.body)
		}
	}
	return said
}

// readText parses an error in the formats of OpenAI and compatible servers: an object or
// a string in "error", or the fields themselves, or a list of these.
func readText(body []byte) refusalText {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var text string
	if json.Unmarshal(body, &outer) == nil && len(outer.Error) > 0 {
		if json.Unmarshal(outer.Error, &text) == nil && text != "" {
			return refusalText{message: text}
		}
		body = outer.Error
	}
	var in struct {
		Message  string          `json:"message"`
		Detail   json.RawMessage `json:"detail"`
		Type     string          `json:"type"`
		Code     json.RawMessage `json:"code"`
		Metadata struct {
			Raw string `json:"raw"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(body, &in) // what does not fit stays empty
	said := refusalText{message: in.Message, kind: in.Type, code: strings.Trim(string(in.Code), `"`)}
	if said.status, _ = strconv.Atoi(said.code); said.status == 0 && said.code == "null" {
		said.code = ""
	}
	if said.message == "" && len(in.Detail) > 0 && json.Unmarshal(in.Detail, &said.message) != nil {
		said.message = readDetail(in.Detail)
	}
	if in.Metadata.Raw != "" { // the error of a router's upstream
		said.message += ": " + in.Metadata.Raw
	}
	return said
}

// readDetail reads the list of faults that servers made with FastAPI send.
func readDetail(detail json.RawMessage) string {
	var faults []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(detail, &faults) // what does not fit stays empty
	var said []string
	for _, f := range faults {
		var at []string
		for _, step := range f.Loc {
			at = append(at, fmt.Sprint(step))
		}
		if f.Msg != "" {
			said = append(said, strings.TrimPrefix(strings.Join(at, ".")+": "+f.Msg, ": "))
		}
	}
	return strings.Join(said, "; ")
}

// Wordings that identify an error whatever its status: proxies wrap the errors of
// providers, often with another status.
var (
	creditWords = []string{
		"insufficient_quota", "exceededbudget", "budget_exceeded", "budget has been exceeded", "billing_hard_limit",
		"billing_not_active", "insufficient credit", "insufficient balance", "insufficient_balance", "requires more credits", "credit balance is too low",
	}
	contextWords = []string{
		"context_length_exceeded", "contextwindowexceeded", "maximum context length", "context window", "context length",
		"prompt is too long", "input is too long", "exceed_context_size", "available context size", "reduce the length of the messages",
		"input tokens exceed", "max_prompt_tokens_exceeded",
	}
	policyWords = []string{
		"content_filter", "content_policy", "contentpolicyviolation", "content management policy", "responsibleaipolicy",
		"usage policy", "usage policies", "safety system", "requires moderation", "policy_violation", "bio_policy", "invalid_prompt",
	}
	authWords     = []string{"invalid_api_key", "authentication_error", "authenticationerror", "incorrect api key", "permission_denied"}
	rateWords     = []string{"rate_limit", "ratelimit", "too many requests"}
	overloadWords = []string{"overloaded", "service_unavailable", "server is busy", "temporarily unavailable"}
)

// class classifies an error. The status is 0 for an error in a stream.
func (s refusalText) class(status int) llm.Class {
	text := strings.ToLower(s.code + " " + s.kind + " " + s.message + " " + s.unshown)
	says := func(words []string) bool { return llm.ContainsAny(text, words...) }
	limited := status == http.StatusTooManyRequests || says(rateWords)
	switch {
	case status == http.StatusPaymentRequired, says(creditWords):
		return llm.ClassCredit
	case !limited && says(contextWords), !limited && status == http.StatusRequestEntityTooLarge:
		return llm.ClassContext
	case says(policyWords):
		return llm.ClassPolicy
	case status == http.StatusUnauthorized, status == http.StatusForbidden, says(authWords):
		return llm.ClassAuth
	case limited:
		return llm.ClassRate
	case status == 502, status == 503, status == 504, status == 529, status >= 520 && status < 528, says(overloadWords):
		return llm.ClassOverload
	case status == http.StatusRequestTimeout:
		return llm.ClassNetwork
	case status >= 300 && status < 500, status < 300 && strings.Contains(text, "invalid_request"):
		return llm.ClassRequest
	}
	return llm.ClassInternal
}

// retryAfter returns the delay that the provider requests, in any of three ways.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return positive(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(v, 64); err == nil {
		return positive(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date")) // the provider's clock, not ours
	if err != nil {
		now = time.Now()
	}
	return positive(float64(at.Sub(now)))
}

// positive rejects implausible delays: negative, more than a day, or not a number.
func positive(d float64) time.Duration {
	if !(d > 0) {
		return 0
	}
	return time.Duration(min(d, float64(24*time.Hour)))
}
