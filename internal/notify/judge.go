package notify

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How often a delivery is tried. The delays grow from 5 s to 12 h, five times
// each; all of them together are 65 hours.
const (
	maxTries = 12
	// announceTries is how often a person is told of something that is news for an hour or so.
	announceTries = 6
	firstDelay    = 5 * time.Second
	maxDelay      = 12 * time.Hour
	growth        = 5
	// maxQuiet is how long a failing webhook is left alone at most, although other
	// deliveries wait for it, unless the receiver asks for longer.
	maxQuiet = time.Minute
	// disableAfter is how long attempts must have failed, without a success
	// between them, until the webhook is disabled.
	disableAfter = 72 * time.Hour
)

// answer is how an attempt went. Problem is "" for a success.
type answer struct {
	status  int
	problem string
	// final is true if another attempt would fail too.
	final bool
	// later is how long the receiver asked to be left alone; 0 if it did not.
	later time.Duration
	took  time.Duration
}

// judge says what becomes of a delivery and of its webhook after an attempt.
// spread is a factor near 1 that keeps retries from coming all at once.
func judge(w Webhook, d Delivery, a answer, now time.Time, spread float64) (Webhook, Delivery) {
	d.Attempts++
	d.LastAt, d.Took, d.Status, d.Error = now, a.took, a.status, a.problem
	if a.problem == "" {
		d.State, d.NextAt = Delivered, time.Time{}
		w.Health = Health{}
		return w, d
	}
	h := w.Health
	if h.Failures++; h.FailingSince.IsZero() {
		h.FailingSince = now
	}
	wait := max(scale(delay(d.Attempts), spread), a.later)
	quiet := max(min(scale(delay(h.Failures), spread), maxQuiet), a.later)
	d.NextAt, h.QuietUntil = now.Add(wait), now.Add(quiet)
	if a.status == http.StatusGone || a.final || d.Attempts >= tries(w) || d.Type == TypeTest {
		d.State, d.NextAt = GivenUp, time.Time{}
	}
	switch {
	case a.status == http.StatusGone:
		h.Disabled = "the receiver responded with 410 Gone"
	case KindOf(w.ID) == KindMail: // the mail server is the operator's: the user cannot mend it
	case h.Failures >= maxTries && now.Sub(h.FailingSince) >= disableAfter:
		h.Disabled = fmt.Sprintf("no delivery succeeded since %s; the last attempt: %s", h.FailingSince.UTC().Format(time.RFC3339), a.problem)
	}
	if h.Disabled != "" {
		w.Enabled = false
	}
	w.Health = h
	return w, d
}

// tries is how often a delivery to a receiver is tried.
func tries(w Webhook) int {
	if KindOf(w.ID) == KindWebhook {
		return maxTries
	}
	return announceTries
}

// delay is how long to wait after so many failures.
func delay(failures int) time.Duration {
	d := firstDelay
	for range failures - 1 {
		if d *= growth; d >= maxDelay {
			return maxDelay
		}
	}
	return d
}

func scale(d time.Duration, factor float64) time.Duration { return time.Duration(float64(d) * factor) }

// RetryAfter reads the header of that name, as seconds or as a date. More than
// maxDelay is not granted: a receiver that is away for longer is disabled.
func RetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	var d time.Duration
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxDelay)
}
