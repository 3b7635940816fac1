package hide

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
	want := strings.NewReplacer(secrets[2], Hidden, secrets[1], Hidden, secrets[0], Hidden, secrets[3], Hidden).Replace(text)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := New(secrets)
		var got bytes.Buffer
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(40))
			got.Write(h.Add(rest[:n]))
			rest = rest[n:]
		}
		got.Write(h.End())
		if got.String() != want {
			t.Fatalf("got %q", got.String())
		}
	}
	if New([]string{""}) != nil {
		t.Error("there is something to hide in nothing")
	}
}
