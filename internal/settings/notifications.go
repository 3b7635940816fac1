package settings

import (
	"slices"
	"strings"
	"time"
)

// Notifications are the user's settings for browser and e-mail notifications. They are not part
// of the settings on the wire: the legacy front end sends those back whole.
type Notifications struct {
	// Off are the kinds of notices that the user does not want.
	Off []string `json:"off,omitempty"`
	// Quiet is when notices are held; nil for never.
	Quiet *QuietHours `json:"quiet,omitempty"`
	// Muted are the conversations that send no notices, the latest last.
	Muted []string `json:"muted,omitempty"`
}

func (n Notifications) clone() Notifications {
	n.Off, n.Muted, n.Quiet = slices.Clone(n.Off), slices.Clone(n.Muted), copyOf(n.Quiet)
	return n
}

// QuietHours are a span of each day in a time zone, such as 22:00 to 07:00.
type QuietHours struct {
	Start string `json:"start"`
	End   string `json:"end"`
	Zone  string `json:"zone"`
}

const clockForm = "15:04"

// Check returns the name of an invalid field, and why it is invalid; "" if there is none.
func (q QuietHours) Check() (field, msg string) {
	for _, f := range [][2]string{{"start", q.Start}, {"end", q.End}} {
		if at, err := time.Parse(clockForm, f[1]); err != nil || at.Format(clockForm) != f[1] {
			return f[0], "must be a time such as 22:00"
		}
	}
	if q.Start == q.End {
		return "end", "must differ from start"
	}
	if q.Zone == "" || q.Zone == "Local" {
		return "time_zone", "must be a time zone such as Europe/Berlin"
	}
	if _, err := time.LoadLocation(q.Zone); err != nil {
		return "time_zone", "must be a time zone such as Europe/Berlin"
	}
	return "", ""
}

// Until is when the quiet hours end that now is in; false outside of them. The clock of the zone
// counts, also on days on which it is changed.
func (q QuietHours) Until(now time.Time) (time.Time, bool) {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		return time.Time{}, false
	}
	local := now.In(zone)
	clock := local.Format(clockForm)
	inside := q.Start <= clock && clock < q.End
	if q.Start > q.End { // across midnight
		inside = clock >= q.Start || clock < q.End
	}
	end, err := time.Parse(clockForm, q.End)
	if !inside || err != nil {
		return time.Time{}, false
	}
	day := local.Day()
	if clock >= q.End {
		day++
	}
	until := time.Date(local.Year(), local.Month(), day, end.Hour(), end.Minute(), 0, 0, zone)
	return until, until.After(now)
}

// Address is where the user gets e-mail, and whether it is confirmed that it is theirs: by an
// administrator, by a link that was mailed there, or by the identity provider, which may know
// one and whether it is verified.
func (s Settings) Address(provider string, verified bool) (address string, confirmed bool) {
	if address = deref(s.Email); address == "" {
		address = provider
	}
	same := func(other string) bool { return address != "" && strings.EqualFold(address, other) }
	return address, verified && same(provider) || same(s.VerifiedEmail)
}
