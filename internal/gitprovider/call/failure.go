package call

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
)

const (
	maxDetail = 300
	maxWait   = 24 * time.Hour // a longer one is not plausible
)

// failure returns the error for an error status.
func (c *Caller) failure(a Answer, body []byte) error {
	switch {
	case a.Status == http.StatusUnauthorized:
		return c.Fail(gitprovider.BadToken, "")
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusForbidden && limited(a.Header, body):
		err := c.Fail(gitprovider.RateLimited, "")
		err.RetryAfter = wait(a.Header, time.Now())
		return err
	case a.Status == http.StatusForbidden:
		return c.Fail(gitprovider.Scope, sentence(body))
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		return c.Fail(gitprovider.NotFound, "")
	case a.Status >= 400 && a.Status < 500 && a.Status != http.StatusRequestTimeout:
		return c.Fail(gitprovider.Refused, sentence(body))
	}
	return c.Fail(gitprovider.Unavailable, "")
}

// limited reports whether a 403 is a rate limit.
func limited(h http.Header, body []byte) bool {
	for _, name := range []string{"X-Ratelimit-Remaining", "Ratelimit-Remaining"} {
		if h.Get(name) == "0" {
			return true
		}
	}
	return h.Get("Retry-After") != "" || strings.Contains(strings.ToLower(sentence(body)), "rate limit")
}

// wait returns how long to wait before the next request, or 0 if unknown.
func wait(h http.Header, now time.Time) time.Duration {
	if after := h.Get("Retry-After"); after != "" {
		if seconds, err := strconv.ParseInt(after, 10, 32); err == nil {
			return bound(time.Duration(seconds) * time.Second)
		}
		if at, err := http.ParseTime(after); err == nil {
			return bound(at.Sub(now))
		}
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if at, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil {
			return bound(time.Unix(at, 0).Sub(now))
		}
	}
	return 0
}

func bound(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }

// sentence extracts the error message of a provider; each has its own format.
func sentence(body []byte) string {
	var answer any
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	var said []string
	collect(answer, &said)
	return strings.Join(slices.Compact(said), " ")
}

// collect gathers messages from the fields that providers use, the general one first.
func collect(v any, said *[]string) {
	switch v := v.(type) {
	case string:
		if text := strings.TrimSpace(v); text != "" {
			*said = append(*said, text)
		}
	case []any:
		for _, one := range v {
			collect(one, said)
		}
	case map[string]any:
		known := false
		for _, name := range []string{"message", "error", "error_description", "detail", "errors"} {
			if inner, ok := v[name]; ok {
				known = true
				collect(inner, said)
			}
		}
		if known {
			return
		}
		if code, ok := v["code"].(string); ok { // GitHub: a field and what is wrong with it
			field, _ := v["field"].(string)
			*said = append(*said, strings.TrimSpace(field+" "+strings.ReplaceAll(code, "_", " "))+".")
			return
		}
		for _, name := range sorted(v) { // GitLab: the field is the name
			if inner, ok := v[name].([]any); ok {
				collect(inner, said)
			}
		}
	}
}

func sorted(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// clean shortens untrusted text to one line without our secrets.
func (c *Caller) clean(text string) string {
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	return clip.Runes(text, maxDetail)
}

// spellings returns the encodings in which a token may appear, longest first.
func spellings(token string) []string {
	if token == "" {
		return nil
	}
	all := []string{token, url.QueryEscape(token), base64.StdEncoding.EncodeToString([]byte(token))}
	if _, password, pair := strings.Cut(token, ":"); pair && password != "" {
		all = append(all, password, url.QueryEscape(password))
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
