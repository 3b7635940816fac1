package config

import (
	"strings"
	"testing"
)

func TestMaskedValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                                    "",
		"127.0.0.1:3000":                      "127.0.0.1:3000",
		"deckhand@example.org":                "deckhand@example.org",
		"Deckhand <deckhand@example.org>":     "Deckhand <deckhand@example.org>",
		"ssh://ada@engine.example.org":        "ssh://ada@engine.example.org",
		"postgres://deck@h/d?sslmode=require": "postgres://deck@h/d?sslmode=require",
		"postgres://deck:PW@h:5432/d?sslmode=require":  "postgres://deck:xxxxx@h:5432/d?sslmode=require",
		"postgres://h/d?user=deck&password=PW&x=1":     "postgres://h/d?user=deck&password=xxxxx&x=1",
		"postgres://h/d?pass%77ord=PW":                 "postgres://h/d?pass%77ord=xxxxx",
		"smtp://ada:PW@localhost:587?from=a@x.example": "smtp://ada:xxxxx@localhost:587?from=a@x.example",
		"smtp://localhost:25?from=a@x.example":         "smtp://localhost:25?from=a@x.example",
		"https://PW@search.example":                    "https://xxxxx@search.example",
		"https://search.example/?api_key=PW&n=1":       "https://search.example/?api_key=xxxxx&n=1",
		"https://search.example/?token=PW":             "https://search.example/?token=xxxxx",
		// Not valid.
		"postgres://deck:PW#PW@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:12#PW@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:12/PW@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:PW?PW@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:12?PW@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:a@PW/PW@h/d":                "postgres://xxxxx@h/d",
		"postgres://deck:PW%zz@h/d":                  "postgres://xxxxx@h/d",
		"postgres://deck:PW@h:port/d":                "postgres://xxxxx@h:port/d",
		" postgres://deck:PW@h/d":                    " postgres://xxxxx@h/d",
		"deck:PW@h/d":                                "xxxxx@h/d",
		"host=h user=deck password=PW dbname=d":      "host=h user=deck password=xxxxx dbname=d",
		"host=h password = 'P W\\'PW' dbname=d":      "host=h password = xxxxx dbname=d",
		"host=h:1 password=PW@PW user=u@x":           "host=h:1 password=xxxxx user=u@x",
		"https://search.example:port/?api_key=PW":    "https://search.example:port/?api_key=xxxxx",
		"https://search.example/%zz?token=PW#secret": "https://search.example/%zz?token=xxxxx#secret",
	} {
		if got := redacted(value); got != want {
			t.Errorf("redacted(%q) = %q, wanted %q", value, got, want)
		}
	}
}

func TestErrorsOfTheConfigFileDoNotQuoteIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"database-url: postgres://u:hunter2@h/d\n  bad: [x\n",
		"database-url: \"postgres://u:hunter2@h/d\n",
		"database-url: postgres://u:hunter2@h/d\ndatabase-url: postgres://u:hunter2@h/d\n",
		"hunter2\n", "- hunter2\n", "a: b\nhunter2\n", "a: [hunter2\n", "a: {hunter2: hunter2\n", "a: *hunter2\n", "\thunter2: x\n", "a: 'hunter2\nb: 'x'\n",
		"a: b\n---\nb: hunter2\n",
		"prices: {acme/m: {input: hunter2, output: 1}}\n", "models: {acme/m: {window: hunter2}}\n", "prices: hunter2\n",
	} {
		_, err := Read(write(t, text))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "Override") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConfigFileRefusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"addr:\n":                                   "addr has no value",
		"idle-close: 1h\nidle_close: 2h\n":          "idle-close and idle_close are the same setting",
		"addr: a:1\n---\naddr: b:1\n":               "more than one YAML document",
		"allow-host: {a: b}\n":                      "allow-host must be a value or a list",
		"allow-host: [{a: b}]\n":                    "allow-host must be a list of values",
		"a: b\n  c: d\n":                            "line ",
		"prices: {acme/m: {input: x, output: 1}}\n": "input has the wrong type",
	} {
		if _, err := Read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, wanted %q", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\naddr: a:1\n", "allow-host: []\n"} {
		if _, err := Read(write(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
