package anthropic_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/anthropic"
	"deckhand/internal/llm/llmtest"
)

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Class
		says  string
	}{
		{"wrong key", llmtest.Reply{Status: 401, Message: "invalid x-api-key"}, llm.ClassAuth, "invalid x-api-key"},
		{"not allowed", llmtest.Reply{Status: 403, Message: "Your API key does not have permission"}, llm.ClassAuth, "permission"},
		{"rate", llmtest.Reply{Status: 429, Message: "Number of request tokens has exceeded your rate limit"}, llm.ClassRate, "rate limit"},
		{"overloaded", llmtest.Reply{Status: 529, Message: "Overloaded"}, llm.ClassOverload, "Overloaded"},
		{"timeout", llmtest.Reply{Status: 504, Message: "too slow"}, llm.ClassOverload, "too slow"},
		{"too long", llmtest.Reply{Status: 400, Message: "prompt is too long: 214005 tokens > 200000 maximum"}, llm.ClassContext, "214005"},
		{"too long with output", llmtest.Reply{Status: 400, Message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}, llm.ClassContext, "190000"},
		{"too large", llmtest.Reply{Status: 413, Message: "Request exceeds the maximum size"}, llm.ClassContext, "maximum size"},
		{"no credit", llmtest.Reply{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."}, llm.ClassCredit, "credit balance"},
		{"billing", llmtest.Reply{Status: 402, Message: "Pay first"}, llm.ClassCredit, "Pay first"},
		{"proxy's budget", llmtest.Reply{Status: 400, Message: "Budget has been exceeded! Current cost: 2, Max budget: 1"}, llm.ClassCredit, "Max budget"},
		{"policy", llmtest.Reply{Status: 400, Message: "Output blocked by content filtering policy"}, llm.ClassPolicy, "blocked"},
		{"internal", llmtest.Reply{Status: 500, Message: "Internal server error"}, llm.ClassInternal, "Internal"},
		{"request", llmtest.Reply{Status: 400, Message: "max_tokens: 999999 > 64000"}, llm.ClassRequest, "max_tokens"},
		{"no such model", llmtest.Reply{Status: 404, Message: "model: claude-9"}, llm.ClassRequest, "claude-9"},
		{"a proxy's page", llmtest.Reply{Status: 502, Body: "<html>Bad Gateway</html>"}, llm.ClassOverload, "502 Bad Gateway"},
		{"a proxy's words", llmtest.Reply{Status: 401, Body: `{"error":"no such virtual key"}`}, llm.ClassAuth, "no such virtual key"},
		{"a proxy's message", llmtest.Reply{Status: 422, Body: `{"message":"cannot"}`}, llm.ClassRequest, "cannot"},
		{"a proxy's detail", llmtest.Reply{Status: 503, Body: `{"detail":"later"}`}, llm.ClassOverload, "later"},
		{"nothing", llmtest.Reply{Status: 500, Body: " "}, llm.ClassInternal, "500"},
		{"the key", llmtest.Reply{Status: 401, Message: "the key test-key is wrong"}, llm.ClassAuth, "the key *** is wrong"},
		{"a page", llmtest.Reply{Body: "<html>Welcome</html>"}, llm.ClassNetwork, "ended early"},
		{"refusal", llmtest.Reply{Text: "I can", Code: "refusal"}, llm.ClassPolicy, "refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Script(test.reply))
			_, err := hear(t.Context(), dial(t, s, old, anthropic.Options{}), ask(said("Hi")))
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("it ended with %v", err)
			}
			if e.Class != test.want || !strings.Contains(e.Message, test.says) {
				t.Errorf("it is %s: %q, wanted %s: %q", e.Class, e.Message, test.want, test.says)
			}
			if strings.Contains(err.Error(), "test-key") {
				t.Errorf("the key is in %q", err)
			}
			if e.Began != (test.name == "refusal") {
				t.Errorf("began: %v", e.Began)
			}
			if n := len(s.Asked()); n != 1 {
				t.Errorf("it was asked %d times: trying again is the loop's decision", n)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	s := llmtest.New(t, llmtest.Script(llmtest.Reply{Status: 429, RetryAfter: "7"}))
	_, err := hear(t.Context(), dial(t, s, old, anthropic.Options{}), ask(said("Hi")))
	var e *llm.Error
	if !errors.As(err, &e) || e.RetryAfter != 7*time.Second || !e.Retry() {
		t.Errorf("it ended with %#v", err)
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
			h, err := hear(t.Context(), dial(t, s, old, anthropic.Options{}), ask(said("Hi")))
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
	_, err = hear(t.Context(), anthropic.New(c, old, anthropic.Options{}), ask(said("Hi")))
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.ClassNetwork || e.Began || !e.Unsent || !strings.Contains(e.Message, "refused") {
		t.Errorf("it ended with %#v", err)
	}
}
