package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// failure returns the error of the call, or nil. response may be nil; sent is false if
// nothing can have reached the provider.
func (m *model) failure(ctx context.Context, err error, response *http.Response, a *answer, sent bool) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	e := classify(err, response, a)
	if e == nil {
		return nil
	}
	e.Began, e.Unsent = a.began, !sent
	e.Message = llm.CleanMessage(e.Message, m.key)
	return e
}

func classify(err error, response *http.Response, a *answer) *llm.Error {
	var said *refusal
	var broken *json.SyntaxError
	switch {
	case errors.As(err, &said):
		kind, message := words(said.body)
		return refused(response.StatusCode, kind, message, response)
	case errors.As(err, &broken), errors.Is(err, bufio.ErrTooLong):
		return &llm.Error{Class: llm.ClassInternal, Message: "the provider sent an invalid response: " + err.Error()}
	case err != nil:
		return llm.Unreachable(err)
	case a.stop == "refusal":
		message := "the model refused to answer"
		if a.refusal != "" {
			message += ": " + a.refusal
		}
		return &llm.Error{Class: llm.ClassPolicy, Message: message}
	case !a.ended && a.stop == "":
		return &llm.Error{Class: llm.ClassNetwork, Message: "the reply ended early"}
	}
	return nil
}

// refusal is an error that the provider reports instead of a response, or during one.
type refusal struct{ body []byte }

func (r *refusal) Error() string { return "received error while streaming: " + string(r.body) }

// refused is an error that the provider reported.
func refused(status int, kind, message string, response *http.Response) *llm.Error {
	e := &llm.Error{Class: class(status, kind, message), Message: message}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("the server responded with %d %s", status, http.StatusText(status)))
	}
	if response != nil {
		e.RetryAfter = llm.RetryAfter(response.Header)
	}
	return e
}

// class classifies by the provider's name of the error, by the status for proxies without
// such names, and by the wording if one name has many meanings.
func class(status int, kind, message string) llm.Class {
	message = strings.ToLower(message)
	switch kind {
	case "authentication_error", "permission_error":
		return llm.ClassAuth
	case "billing_error":
		return llm.ClassCredit
	case "rate_limit_error":
		return llm.ClassRate
	case "overloaded_error", "timeout_error":
		return llm.ClassOverload
	case "request_too_large":
		return llm.ClassContext
	}
	switch {
	case llm.ContainsAny(message, "credit balance is too low", "budget has been exceeded", "reached your specified api usage limits"):
		return llm.ClassCredit
	case llm.ContainsAny(message, "prompt is too long", "input is too long", "context window", "context limit", "context length"):
		return llm.ClassContext
	case llm.ContainsAny(message, "content filtering policy", "content policy"):
		return llm.ClassPolicy
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.ClassAuth
	case http.StatusPaymentRequired:
		return llm.ClassCredit
	case http.StatusTooManyRequests:
		return llm.ClassRate
	case http.StatusRequestEntityTooLarge:
		return llm.ClassContext
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return llm.ClassOverload
	case http.StatusFailedDependency: // Bedrock's model failed
		return llm.ClassInternal
	}
	if kind == "api_error" || status >= http.StatusInternalServerError {
		return llm.ClassInternal
	}
	return llm.ClassRequest
}

// words finds the name and the message in an error body. Proxies have their own formats.
func words(body []byte) (kind, message string) {
	var e struct {
		Error   json.RawMessage
		Message string
		Detail  string
	}
	if json.Unmarshal(body, &e) != nil {
		return "", ""
	}
	var inner struct{ Type, Message string }
	var text string
	switch {
	case json.Unmarshal(e.Error, &inner) == nil && inner.Message != "":
		return inner.Type, inner.Message
	case json.Unmarshal(e.Error, &text) == nil && text != "":
		return "", text
	case e.Message != "":
		return inner.Type, e.Message
	}
	return inner.Type, e.Detail
}
