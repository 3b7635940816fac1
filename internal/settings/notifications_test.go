package settings

import (
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	t.Parallel()
	night := QuietHours{Start: "22:00", End: "07:00", Zone: "Europe/Berlin"}
	day := QuietHours{Start: "09:00", End: "17:30", Zone: "America/New_York"}
	for _, c := range []struct {
		q          QuietHours
		now, until string
	}{
		{night, "2030-01-10T20:59:59Z", ""},
		{night, "2030-01-10T21:00:00Z", "2030-01-11T06:00:00Z"},
		{night, "2030-01-11T05:59:59Z", "2030-01-11T06:00:00Z"},
		{night, "2030-01-11T06:00:00Z", ""},
		{night, "2030-01-31T23:30:00Z", "2030-02-01T06:00:00Z"}, // already the next day there
		// In the night of the change to summer time 07:00 comes an hour earlier.
		{night, "2030-03-30T22:00:00Z", "2030-03-31T05:00:00Z"},
		{night, "2030-10-26T21:00:00Z", "2030-10-27T06:00:00Z"},
		{day, "2030-07-01T13:00:00Z", "2030-07-01T21:30:00Z"},
		{day, "2030-07-01T21:30:00Z", ""},
		{QuietHours{Start: "22:00", End: "07:00", Zone: "Mars/Olympus"}, "2030-01-10T23:00:00Z", ""},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		until, quiet := c.q.Until(now)
		got := ""
		if quiet {
			got = until.UTC().Format(time.RFC3339)
		}
		if got != c.until {
			t.Errorf("%+v at %s: until %q, want %q", c.q, c.now, got, c.until)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	own := "Ada@example.org"
	for name, c := range map[string]struct {
		s         Settings
		provider  string
		verified  bool
		address   string
		confirmed bool
	}{
		"none":                         {},
		"not confirmed":                {s: Settings{Plain: Plain{Email: &own}}, address: own},
		"confirmed here":               {s: Settings{Plain: Plain{Email: &own}, VerifiedEmail: "ada@example.org"}, address: own, confirmed: true},
		"another was confirmed":        {s: Settings{Plain: Plain{Email: &own}, VerifiedEmail: "eve@example.org"}, address: own},
		"the provider's":               {provider: "p@example.org", verified: true, address: "p@example.org", confirmed: true},
		"the provider's, not verified": {provider: "p@example.org", address: "p@example.org"},
		"another than the provider's":  {s: Settings{Plain: Plain{Email: &own}}, provider: "p@example.org", verified: true, address: own},
	} {
		if address, confirmed := c.s.Address(c.provider, c.verified); address != c.address || confirmed != c.confirmed {
			t.Errorf("%s: %q %v, want %q %v", name, address, confirmed, c.address, c.confirmed)
		}
	}
}
