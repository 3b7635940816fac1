package config

import "testing"

func TestRedacted(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@h/d":             "postgres://u:xxxxx@h/d",
		"nats://u:p@h:4222":              "nats://xxxxx@h:4222",
		"nats://token@h:4222,nats://i:1": "nats://xxxxx@h:4222,nats://i:1",
		"nats://u:p@ss@h,nats://i":       "nats://xxxxx@h,nats://i",
		"tls://h?creds=f":                "tls://h?creds=f",
		"/var/lib/deckhand":              "/var/lib/deckhand",
	} {
		if got := redacted(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
