package gemini_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/gemini"
	"deckhand/internal/llm/llmtest"
)

const perDay = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota.","details":[
	{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
	{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"20s"}]}}`

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Class
		says  string
		began bool
	}{
		{"wrong key", llmtest.Reply{Status: 400, Code: "API_KEY_INVALID", Message: "Pass a valid one."}, llm.ClassAuth, "valid", false},
		{"wrong key in words", llmtest.Reply{Status: 400, Message: "API key not valid. Please pass a valid API key."}, llm.ClassAuth, "valid", false},
		{"no key", llmtest.Reply{Status: 401, Message: "Who?"}, llm.ClassAuth, "Who", false},
		{"not allowed", llmtest.Reply{Status: 403, Message: "Permission denied"}, llm.ClassAuth, "denied", false},
		{"rate", llmtest.Reply{Status: 429, RetryAfter: "27", Message: "You exceeded your current quota, please check your plan and billing details."}, llm.ClassRate, "quota", false},
		{"busy", llmtest.Reply{Status: 429, Message: "Resource has been exhausted."}, llm.ClassRate, "exhausted", false},
		{"no credit", llmtest.Reply{Status: 429, Message: "You exceeded your current quota, please check your plan and billing details."}, llm.ClassCredit, "quota", false},
		{"the day's share", llmtest.Reply{Status: 429, Body: perDay}, llm.ClassCredit, "quota", false},
		{"depleted", llmtest.Reply{Status: 429, RetryAfter: "1", Message: "Your prepayment credits are depleted."}, llm.ClassCredit, "depleted", false},
		{"billing", llmtest.Reply{Status: 400, Code: "FAILED_PRECONDITION", Message: "Please enable billing on your project."}, llm.ClassCredit, "billing", false},
		{"overloaded", llmtest.Reply{Status: 503, Message: "The model is overloaded."}, llm.ClassOverload, "overloaded", false},
		{"too slow", llmtest.Reply{Status: 504, Message: "Deadline expired"}, llm.ClassOverload, "Deadline", false},
		{"internal", llmtest.Reply{Status: 500, Message: "An internal error has occurred."}, llm.ClassInternal, "internal", false},
		{"too long", llmtest.Reply{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}, llm.ClassContext, "1200000", false},
		{"request", llmtest.Reply{Status: 400, Message: "Invalid value"}, llm.ClassRequest, "Invalid", false},
		{"no such model", llmtest.Reply{Status: 404, Message: "models/x is not found"}, llm.ClassRequest, "not found", false},
		{"a proxy's page", llmtest.Reply{Status: 502, Body: "<html>Bad Gateway</html>"}, llm.ClassOverload, "502 Bad Gateway", false},
		{"nothing", llmtest.Reply{Status: 500, Body: " "}, llm.ClassInternal, "500", false},
		{"the key", llmtest.Reply{Status: 401, Message: "the key test-key is wrong"}, llm.ClassAuth, "the key *** is wrong", false},
		{"a page", llmtest.Reply{Body: "<html>Welcome</html>"}, llm.ClassInternal, "invalid response", false},
		{"another shape", llmtest.Reply{Body: "data: {\"candidates\":{}}\n\n"}, llm.ClassInternal, "invalid response", false},
		{"a bare error", llmtest.Reply{Body: `{"error":{"code":503,"status":"UNAVAILABLE","message":"Later."}}`}, llm.ClassOverload, "Later.", false},
		{"blocked", llmtest.Reply{Code: "PROHIBITED_CONTENT"}, llm.ClassPolicy, "PROHIBITED_CONTENT", true},
		{"unsafe", llmtest.Reply{Text: "First you", Code: "SAFETY"}, llm.ClassPolicy, "SAFETY", true},
		{"unknown language", llmtest.Reply{Text: "First you", Code: "LANGUAGE"}, llm.ClassRequest, "LANGUAGE", true},
		{"malformed call", llmtest.Reply{Text: "First you", Code: "MALFORMED_FUNCTION_CALL"}, llm.ClassInternal, "MALFORMED", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(test.reply))
			_, err := hear(t.Context(), dial(t, s, older, gemini.Options{}), ask(said("Hi")))
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("it ended with %v", err)
			}
			if e.Class != test.want || !strings.Contains(e.Message, test.says) || e.Began != test.began || e.Unsent {
				t.Errorf("it is %#v, wanted %s: %q", e, test.want, test.says)
			}
			if strings.Contains(err.Error(), "test-key") {
				t.Errorf("the key is in %q", err)
			}
			if n := len(s.Asked()); n != 1 {
				t.Errorf("it was asked %d times: trying again is the loop's decision", n)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, reply := range []llmtest.Reply{
		{Status: 429, RetryAfter: "7"},
		{Status: 429, RetryAfter: "99", Body: `{"error":{"code":429,"details":[{"retryDelay":"7.0s"}]}}`},
		{Status: 429, RetryAfter: "7", Body: `{"error":{"code":429}}`}, // a proxy's, in the header only
	} {
		s := llmtest.New(t, llmtest.Script(reply))
		_, err := hear(t.Context(), dial(t, s, older, gemini.Options{}), ask(said("Hi")))
		var e *llm.Error
		if !errors.As(err, &e) || e.RetryAfter != 7*time.Second || !e.Retry() {
			t.Errorf("%+v ended with %#v", reply, err)
		}
	}
}

func TestBreaks(t *testing.T) {
	for how, want := range map[llmtest.Break]llm.Class{
		llmtest.Drop:      llm.ClassNetwork,
		llmtest.EndEarly:  llm.ClassNetwork,
		llmtest.Malformed: llm.ClassInternal,
		llmtest.ErrorLate: llm.ClassOverload,
	} {
		t.Run(string(how), func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "An answer that does not come to its end.", Break: how}))
			h, err := hear(t.Context(), dial(t, s, older, gemini.Options{}), ask(said("Hi")))
			var e *llm.Error
			if !errors.As(err, &e) || e.Class != want || !e.Began || e.Unsent {
				t.Errorf("it ended with %#v, wanted %s", err, want)
			}
			if h.text == "" || h.done != nil {
				t.Errorf("heard %+v", h)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := llm.Config{APIKey: "test-key", BaseURL: "http://" + l.Addr().String(), Client: client(t)}
	for name, want := range map[string]llm.Class{older: llm.ClassNetwork, "../../files": llm.ClassRequest} {
		_, err = hear(t.Context(), gemini.New(c, name, gemini.Options{}), ask(said("Hi")))
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != want || e.Began || !e.Unsent {
			t.Errorf("%s ended with %#v, wanted %s", name, err, want)
		}
	}
}
