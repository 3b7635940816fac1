package llm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"deckhand/internal/llm"
)

func TestRetryAfter(t *testing.T) {
	const date = "Sun, 15 Nov 2026 08:00:00 GMT"
	for _, test := range []struct {
		headers []string
		want    time.Duration
	}{
		{nil, 0},
		{[]string{"Retry-After", "7"}, 7 * time.Second},
		{[]string{"Retry-After", "0.5"}, time.Second / 2},
		{[]string{"Retry-After", "7", "Retry-After-Ms", "250"}, 250 * time.Millisecond},
		{[]string{"Retry-After", "-1"}, 0},
		{[]string{"Retry-After", "NaN"}, 0},
		{[]string{"Retry-After", "soon"}, 0},
		{[]string{"Retry-After", "1e99"}, 24 * time.Hour},
		{[]string{"Retry-After", "Sun, 15 Nov 2026 08:01:00 GMT", "Date", date}, time.Minute},
		{[]string{"Retry-After", date, "Date", "Sun, 15 Nov 2026 08:01:00 GMT"}, 0},
		{[]string{"Retry-After", "Sun, 15 Nov 2199 08:01:00 GMT"}, 24 * time.Hour},
	} {
		h := http.Header{}
		for i := 0; i < len(test.headers); i += 2 {
			h.Set(test.headers[i], test.headers[i+1])
		}
		if got := llm.RetryAfter(h); got != test.want {
			t.Errorf("%q gives %v, wanted %v", test.headers, got, test.want)
		}
	}
}

func TestCleanMessage(t *testing.T) {
	if got := llm.CleanMessage("the key sk-1 is not sk-2", "sk-1"); got != "the key *** is not sk-2" {
		t.Errorf("got %q", got)
	}
	for key, want := range map[string]string{ // a short key is not told by gaps inside of words
		"k": "the key *** is not ok, key=***.", "e": "the key k is not ok, key=k.", "key": "the *** k is not ok, ***=k.",
	} {
		if got := llm.CleanMessage("the key k is not ok, key=k.", key); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	if got := llm.CleanMessage("no key", ""); got != "no key" {
		t.Errorf("got %q", got)
	}
	if got := llm.CleanMessage(strings.Repeat("ä", 5000)+"x", ""); len(got) > 2100 || !utf8.ValidString(got) {
		t.Errorf("got %d bytes", len(got))
	}
	if got := llm.CleanMessage("x"+strings.Repeat("ä", 5000), ""); len(got) > 2100 || !utf8.ValidString(got) {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestUnreachable(t *testing.T) {
	err := &url.Error{Op: "Post", URL: "https://sk-1@example.com/?key=sk-1", Err: errors.New("refused by the rules")}
	if got := llm.Unreachable(err); strings.Contains(got.Message, "sk-1") || !strings.Contains(got.Message, "at example.com: refused by the rules") {
		t.Errorf("got %q", got.Message)
	}
}

func TestSending(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	get := func() bool {
		t.Helper()
		ctx, sent := llm.Sending(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.Client().Do(req); err == nil {
			res.Body.Close()
		}
		return sent()
	}
	if !get() {
		t.Error("a request that arrived was not sent")
	}
	s.Close()
	if get() {
		t.Error("a request without a recipient was sent")
	}
}

func TestSplitDataURL(t *testing.T) {
	for url, want := range map[string][2]string{
		"data:image/png;base64,AAAA":             {"image/png", "AAAA"},
		"data:image/jpeg;charset=x;base64,AAAA=": {"image/jpeg", "AAAA="},
		"data:image/png,AAAA":                    {},
		"data:text/plain;base64,AAAA":            {},
		"data:image/png;base64,":                 {},
		"data:image/png;base64":                  {},
		"https://example.com/a.png":              {},
		"":                                       {},
	} {
		kind, data, ok := llm.SplitDataURL(url)
		if kind != want[0] || data != want[1] || ok != (want[0] != "") {
			t.Errorf("%q gives %q, %q, %v", url, kind, data, ok)
		}
	}
}
