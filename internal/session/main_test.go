package session_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/soak"
)

// Every run tries the same random worlds, so that a failure belongs to the
// change at hand. A soak tries others each time, and -rapid.seed chooses.
func TestMain(m *testing.M) {
	flag.Parse()
	usual := map[string]string{"rapid.checks": "500"} // some situations are rare in a hundred worlds
	if !soak.On() {
		usual["rapid.seed"] = "20261116"
	}
	for name, value := range usual {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m)
}
