package shell

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// However a stream is cut into pieces, what is written is the text without its secrets.
func TestHider(t *testing.T) {
	t.Parallel()
	secrets := []string{"horse", "corr", "correct horse battery", "tail-and-tail", ""}
	text := strings.Repeat("a horse, a correct horse battery, correct horse batter\ntail-and-tail-and-tail ", 50) + "correct hor"
	want := strings.NewReplacer(secrets[2], hidden, secrets[1], hidden, secrets[0], hidden, secrets[3], hidden).Replace(text)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := newHider(secrets)
		var got bytes.Buffer
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(40))
			got.Write(h.add(rest[:n]))
			rest = rest[n:]
		}
		got.Write(h.end())
		if got.String() != want {
			t.Fatalf("got %q", got.String())
		}
	}
	if newHider([]string{""}) != nil {
		t.Error("there is something to hide in nothing")
	}
}
