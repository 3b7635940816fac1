// Package risk rates what an agent wants to do before it does it, by rules alone:
// no model is asked. A shell command is parsed into a syntax tree, and every
// command in it is rated; the worst one counts.
//
// The rules know what is harmless and doubt the rest. A list of dangerous commands would be
// bypassed; here, what is not understood is never Low. Low is not a promise: the sandbox
// contains what the rules overlook.
//
// How each tool's calls are rated is declared in the tool's folder, with what is here.
// The package also knows which commands a pattern allows for good.
package risk

import "fmt"

// Rating is how dangerous a call is, in the numbers that clients know.
type Rating int

// The ratings.
const (
	// Unknown cannot be rated before it runs.
	Unknown Rating = -1
	// Low only reads, changes nothing that outlives the command, or builds and tests the project in its usual way.
	Low Rating = 0
	// Medium changes the project, installs something or runs other code.
	Medium Rating = 1
	// High touches the system, sends data away or cannot be undone.
	High Rating = 2
)

// String is the name that models and people use.
func (r Rating) String() string {
	switch r {
	case Unknown:
		return "UNKNOWN"
	case Low:
		return "LOW"
	case Medium:
		return "MEDIUM"
	case High:
		return "HIGH"
	default:
		return fmt.Sprintf("Rating(%d)", int(r))
	}
}

// Worse reports whether r is to be feared more than o. What is unknown lies
// between Medium and High.
func (r Rating) Worse(o Rating) bool { return r.weight() > o.weight() }

func (r Rating) weight() int {
	switch r {
	case Low:
		return 0
	case Medium:
		return 1
	case Unknown:
		return 2
	default:
		return 3
	}
}

// verdict collects ratings and keeps the worst, with the first reason for it.
type verdict struct {
	rating Rating
	reason string
}

func (v *verdict) add(r Rating, reason string) {
	if v.reason == "" || r.Worse(v.rating) {
		v.rating, v.reason = r, reason
	}
}
