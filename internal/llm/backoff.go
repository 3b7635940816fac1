package llm

import (
	"math/rand/v2"
	"time"
)

// Backoff is how a failed model call is tried again: so many attempts in all,
// with a wait that doubles from First up to Longest. A provider that says how
// long to wait is obeyed, up to Asked.
type Backoff struct {
	Attempts       int
	First, Longest time.Duration
	Asked          time.Duration
}

// OrDefault fills in what is zero.
func (b Backoff) OrDefault() Backoff {
	if b.Attempts == 0 {
		b.Attempts = 5
	}
	if b.First == 0 {
		b.First = 2 * time.Second
	}
	if b.Longest == 0 {
		b.Longest = 64 * time.Second
	}
	if b.Asked == 0 {
		b.Asked = 10 * time.Minute
	}
	return b
}

// Wait is how long to wait after so many failures: somewhere between half of it
// and all of it, so that those who failed together do not come back together.
func (b Backoff) Wait(failures int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, b.Asked) + rand.N(b.First/4+1)
	}
	d := min(b.First<<min(failures-1, 20), b.Longest)
	return d/2 + rand.N(d/2+1)
}
