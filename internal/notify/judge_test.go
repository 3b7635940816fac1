package notify

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestDelaysGrowOverThreeDays(t *testing.T) {
	want := []time.Duration{5 * time.Second, 25 * time.Second, 125 * time.Second, 625 * time.Second, 3125 * time.Second, 15625 * time.Second}
	var sum time.Duration
	for i := range maxTries - 1 {
		d := delay(i + 1)
		if i < len(want) && d != want[i] || i >= len(want) && d != maxDelay {
			t.Errorf("delay %d is %s", i+1, d)
		}
		sum += d
	}
	if sum < 60*time.Hour || sum > 80*time.Hour {
		t.Errorf("all together they are %s", sum)
	}
}

func TestJudge(t *testing.T) {
	ok := answer{status: 204, took: time.Second}
	bad := func(status int, later time.Duration) answer {
		return answer{status: status, problem: "the receiver answered badly", later: later}
	}
	failing := func(failures int, since time.Duration) Health {
		return Health{Failures: failures, FailingSince: noon.Add(-since)}
	}
	for name, test := range map[string]struct {
		health   Health
		attempts int
		typ      string
		answer   answer

		state        State
		wait, quiet  time.Duration
		failures     int
		disabledWith string
	}{
		"success":                         {failing(4, time.Hour), 4, "x", ok, Delivered, 0, 0, 0, ""},
		"first failure":                   {Health{}, 0, "x", bad(500, 0), Waiting, 5 * time.Second, 5 * time.Second, 1, ""},
		"second failure":                  {failing(1, time.Second), 1, "x", bad(404, 0), Waiting, 25 * time.Second, 25 * time.Second, 2, ""},
		"quiet is bounded":                {failing(20, time.Hour), 5, "x", bad(500, 0), Waiting, 15625 * time.Second, maxQuiet, 21, ""},
		"new delivery of a failing one":   {failing(3, time.Hour), 0, "x", bad(0, 0), Waiting, 5 * time.Second, maxQuiet, 4, ""},
		"asked to wait":                   {Health{}, 0, "x", bad(429, time.Hour), Waiting, time.Hour, time.Hour, 1, ""},
		"asked to wait less than we do":   {failing(5, time.Hour), 5, "x", bad(503, time.Second), Waiting, 15625 * time.Second, maxQuiet, 6, ""},
		"last try":                        {failing(11, 60*time.Hour), 11, "x", bad(500, 0), GivenUp, 0, maxQuiet, 12, ""},
		"failing for days":                {failing(40, 72*time.Hour), 3, "x", bad(500, 0), Waiting, 625 * time.Second, maxQuiet, 41, "no delivery succeeded since 2026-02-26T12:00:00Z; the last attempt: the receiver answered badly"},
		"failed long ago, and seldom":     {failing(3, 720*time.Hour), 0, "x", bad(500, 0), Waiting, 5 * time.Second, maxQuiet, 4, ""},
		"gone":                            {Health{}, 0, "x", bad(410, 0), GivenUp, 0, 5 * time.Second, 1, "the receiver responded with 410 Gone"},
		"a test is tried once":            {Health{}, 0, TypeTest, bad(500, 0), GivenUp, 0, 5 * time.Second, 1, ""},
		"no answer counts as any failure": {Health{}, 0, "x", answer{problem: "away"}, Waiting, 5 * time.Second, 5 * time.Second, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := judge(Webhook{Enabled: true, Health: test.health}, Delivery{Type: test.typ, State: Waiting, Attempts: test.attempts}, test.answer, noon, 1)
			if d.State != test.state || d.Attempts != test.attempts+1 || d.Status != test.answer.status || d.Error != test.answer.problem || !d.LastAt.Equal(noon) || d.Took != test.answer.took {
				t.Errorf("%+v", d)
			}
			if test.wait == 0 && !d.NextAt.IsZero() || test.wait > 0 && d.NextAt.Sub(noon) != test.wait {
				t.Errorf("tried next at %s, want %s later", d.NextAt, test.wait)
			}
			h := w.Health
			if test.quiet == 0 && !h.QuietUntil.IsZero() || test.quiet > 0 && h.QuietUntil.Sub(noon) != test.quiet {
				t.Errorf("quiet until %s, want %s", h.QuietUntil, test.quiet)
			}
			if h.Failures != test.failures || h.FailingSince.IsZero() != (test.failures == 0) {
				t.Errorf("%+v", h)
			}
			if h.Disabled != test.disabledWith || w.Enabled != (test.disabledWith == "") {
				t.Errorf("enabled %t, %q", w.Enabled, h.Disabled)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 90 ": 90 * time.Second, "-1": 0, "1.5": 0, "soon": 0,
		"86400":                      maxDelay,
		"4294967295":                 maxDelay,
		"99999999999999999999999999": 0,
		noon.Add(time.Minute).Format(http.TimeFormat):     time.Minute,
		noon.Add(-time.Minute).Format(http.TimeFormat):    0,
		noon.Add(100 * time.Hour).Format(http.TimeFormat): maxDelay,
	} {
		if got := RetryAfter(text, noon); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Wed, 21 Oct 2026 07:28:00 GMT")
	f.Add("-5")
	f.Fuzz(func(t *testing.T, text string) {
		if d := RetryAfter(text, noon); d < 0 || d > maxDelay {
			t.Errorf("%q: %s", text, d)
		}
	})
}

func TestCheckURL(t *testing.T) {
	for text, part := range map[string]string{
		"https://example.org":                     "",
		"http://127.0.0.1:8080/hook?a=b":          "",
		"http://[::1]:8080/":                      "",
		"":                                        "http or https",
		"example.org/hook":                        "http or https",
		"ftp://example.org":                       "http or https",
		"file:///etc/passwd":                      "http or https",
		"https:example.org":                       "http or https",
		"https://":                                "http or https",
		"https://:443/x":                          "http or https",
		"https://exa mple.org":                    "http or https",
		"https://example.org/\x00":                "http or https",
		"https://user:pass@example.org":           "user name",
		"https://user@example.org":                "user name",
		"https://example.org/#part":               "#",
		"https://example.org:0/":                  "port",
		"https://example.org:99999/":              "port",
		"https://x/" + string(make([]byte, 2000)): "2000",
	} {
		err := CheckURL(text)
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	f.Add("https://example.org/hook")
	f.Add("http://user@[::1]:80/#x")
	f.Fuzz(func(t *testing.T, text string) {
		if CheckURL(text) != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, text, nil)
		if err != nil || req.URL.Host == "" || req.URL.User != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
			t.Errorf("%q is accepted, but: %v", text, err)
		}
	})
}
