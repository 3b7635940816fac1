package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckhand/internal/llm"
)

// failure returns the error of the call, or nil. sent is false if nothing can have
// reached the provider.
func (m *model) failure(ctx context.Context, err error, response *http.Response, a *answer, sent bool) error {
	whole := a.finish != "" || a.blocked != ""
	if !whole && ctx.Err() != nil {
		return ctx.Err()
	}
	e := ended(a)
	if !whole {
		e = classify(err, response, sent)
	}
	if e == nil {
		return nil
	}
	e.Began, e.Unsent = a.began, !sent
	e.Message = llm.CleanMessage(e.Message, m.key)
	return e
}

// ended returns the error of a response that ended without content, or nil.
func ended(a *answer) *llm.Error {
	reason := string(a.finish)
	if a.blocked != "" {
		reason = string(a.blocked)
	}
	if a.explained != "" {
		reason += ": " + a.explained
	}
	switch {
	case a.blocked != "":
		return &llm.Error{Class: llm.ClassPolicy, Message: "the provider refused the request (" + reason + ")"}
	case a.finish == "STOP", a.finish == "MAX_TOKENS", a.finish == "FINISH_REASON_UNSPECIFIED":
		return nil
	case forbidden[a.finish]:
		return &llm.Error{Class: llm.ClassPolicy, Message: "the provider stopped the answer (" + reason + ")"}
	case a.finish == "LANGUAGE":
		return &llm.Error{Class: llm.ClassRequest, Message: "the model does not support this language (" + reason + ")"}
	}
	return &llm.Error{Class: llm.ClassInternal, Message: "the model did not finish its answer (" + reason + ")"}
}

// forbidden are the finish reasons for rejected content.
var forbidden = map[string]bool{
	"SAFETY": true, "RECITATION": true, "BLOCKLIST": true, "PROHIBITED_CONTENT": true, "SPII": true,
	"IMAGE_SAFETY": true, "IMAGE_PROHIBITED_CONTENT": true, "IMAGE_RECITATION": true,
}

// class classifies by the reason in the details, by the wording if one status has many
// meanings, and by the status.
func classify(err error, response *http.Response, sent bool) *llm.Error {
	var said *apiError
	var broken *brokenError
	var address *url.Error
	switch {
	case errors.As(err, &said):
		return refused(*said, response)
	case errors.As(err, &broken):
		return &llm.Error{Class: llm.ClassNetwork, Message: "the connection broke: " + broken.Error()}
	case errors.As(err, &address):
		return llm.Unreachable(err)
	case err != nil && !sent:
		return &llm.Error{Class: llm.ClassRequest, Message: err.Error()}
	case err != nil:
		return &llm.Error{Class: llm.ClassInternal, Message: "the provider sent an invalid response"}
	}
	return &llm.Error{Class: llm.ClassNetwork, Message: "the reply ended early"}
}

// refused is an error that the provider reported.
func refused(said apiError, response *http.Response) *llm.Error {
	if said.Code == 0 {
		said.Code = response.StatusCode
	}
	e := &llm.Error{Class: class(said), Message: strings.TrimSpace(said.Message), RetryAfter: retryDelay(said.Details)}
	if e.Message == "" || said.foreign { // other bodies are not shown: the URL may not be that of a model
		e.Message = strings.TrimSpace(fmt.Sprintf("the server responded with %d %s", said.Code, http.StatusText(said.Code)))
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = llm.RetryAfter(response.Header)
	}
	return e
}

// class sorts by the reason in the details, by wording where one status stands
// for many things, and by the status.
func class(e apiError) llm.Class {
	message := strings.ToLower(e.Message)
	switch {
	case llm.ContainsAny(reasons(e.Details), "API_KEY"), llm.ContainsAny(message, "api key not valid", "api key expired"):
		return llm.ClassAuth
	case llm.ContainsAny(message, "token count", "number of tokens") && llm.ContainsAny(message, "exceed", "maximum"):
		return llm.ClassContext
	case e.Code == http.StatusTooManyRequests || e.Status == "RESOURCE_EXHAUSTED":
		return exhausted(e, message)
	case e.Code == http.StatusPaymentRequired, llm.ContainsAny(message, "billing", "credits are depleted", "budget has been exceeded"):
		return llm.ClassCredit
	}
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.ClassAuth
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return llm.ClassOverload
	case http.StatusRequestEntityTooLarge:
		return llm.ClassContext
	}
	switch e.Status {
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return llm.ClassAuth
	case "UNAVAILABLE", "DEADLINE_EXCEEDED":
		return llm.ClassOverload
	}
	if e.Code >= http.StatusInternalServerError || e.Status == "INTERNAL" {
		return llm.ClassInternal
	}
	return llm.ClassRequest
}

// exhausted distinguishes a limit per minute, for which waiting helps, from an exhausted
// account. The wording is the same, but the provider sends a delay only for the former,
// unless the daily quota is exceeded.
func exhausted(e apiError, message string) llm.Class {
	switch {
	case llm.ContainsAny(message, "credits are depleted", "spending cap"), llm.ContainsAny(quotas(e.Details), "PerDay"):
		return llm.ClassCredit
	case retryDelay(e.Details) > 0:
		return llm.ClassRate
	case llm.ContainsAny(message, "billing", "exceeded your current quota"):
		return llm.ClassCredit
	}
	return llm.ClassRate
}

// reasons are the reasons in an error's details, in one text.
func reasons(details []map[string]any) string {
	var all []string
	for _, d := range details {
		if reason, is := d["reason"].(string); is {
			all = append(all, reason)
		}
	}
	return strings.Join(all, " ")
}

// quotas are the names of the quotas that were exceeded, in one text.
func quotas(details []map[string]any) string {
	var all []string
	for _, d := range details {
		violations, _ := d["violations"].([]any)
		for _, v := range violations {
			fields, _ := v.(map[string]any)
			if id, is := fields["quotaId"].(string); is {
				all = append(all, id)
			}
		}
	}
	return strings.Join(all, " ")
}

// retryDelay is how long the details say to wait.
func retryDelay(details []map[string]any) time.Duration {
	for _, d := range details {
		value, _ := d["retryDelay"].(string)
		if delay, err := time.ParseDuration(value); err == nil && delay > 0 {
			return min(delay, 24*time.Hour)
		}
	}
	return 0
}
