package config

import "testing"

// Texts of the parser and of Go are replaced by plain English.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`--model: expected string value but got "EOL" (<EOL>)`:                                       "--model needs a value",
		`--max-iterations: expected int value but got "EOL" (<EOL>)`:                                 "--max-iterations needs a value",
		`--image: missing value, expecting "<arg>,..."`:                                              "--image needs a value",
		`--model: expected string value but got "--json" (long flag); perhaps try --model="--json"?`: `--model needs a value; "--json" is a flag`,
		`expected "<dir>"`: "missing argument <dir>",
		`--image: stat /none.png: no such file or directory`:                                                "--image: the file /none.png does not exist",
		`--tls-cert: open /etc/key: permission denied`:                                                      "--tls-cert: /etc/key: permission denied",
		`--database-url-file: open /none: no such file or directory (from envar DECKHAND_DATABASE_URL="x")`: "--database-url-file: the file /none does not exist (environment variable DECKHAND_DATABASE_URL)",
		`--idle-close must not be negative`:                                                                 "--idle-close must not be negative",
	} {
		if got := plain(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
