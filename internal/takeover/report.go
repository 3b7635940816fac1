package takeover

import "fmt"

// Report is what became of everything.
type Report struct {
	DryRun        bool           `json:"dry_run"`
	Settings      Settings       `json:"settings"`
	Conversations []Conversation `json:"conversations"`
	// Problems are those of the folder as a whole.
	Problems []string `json:"problems,omitempty"`
}

// Settings is what became of the settings and secrets. It names them and never has
// their values.
type Settings struct {
	// Found says that the folder has any.
	Found bool `json:"found"`
	// Imported are the fields that were stored, Kept those that were not because the
	// user has stored them here.
	Imported []string `json:"imported,omitempty"`
	Kept     []string `json:"kept,omitempty"`
	// Refused are fields with what is wrong with them.
	Refused []string `json:"refused,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// The states of a conversation in a report.
const (
	Imported = "imported"
	Present  = "present" // it was there before
	Failed   = "failed"
)

// Conversation is what became of one.
type Conversation struct {
	// From is its folder.
	From  string `json:"from"`
	ID    string `json:"id,omitempty"`
	Title string `json:"title,omitempty"`
	State string `json:"state"`
	// Events is how many of its events were taken over.
	Events int `json:"events"`
	// Notes are worth knowing, Problems are what is missing now.
	Notes    []string `json:"notes,omitempty"`
	Problems []string `json:"problems,omitempty"`

	hidden int // problems that are counted only
}

// mostProblems is how many problems of one conversation are told one by one.
const mostProblems = 20

func (c *Conversation) problem(format string, args ...any) {
	if len(c.Problems) >= mostProblems {
		c.hidden++
		return
	}
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

func (c *Conversation) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// close adds what was only counted.
func (c *Conversation) close() {
	if c.hidden > 0 {
		c.Problems = append(c.Problems, fmt.Sprintf("and %d more like these", c.hidden))
		c.hidden = 0
	}
}

// Clean is true when nothing is missing that was in the folder.
func (r Report) Clean() bool {
	if len(r.Problems)+len(r.Settings.Refused) > 0 {
		return false
	}
	for _, c := range r.Conversations {
		if len(c.Problems) > 0 || c.State == Failed {
			return false
		}
	}
	return true
}

// Count is how many conversations are in a state.
func (r Report) Count(state string) int {
	n := 0
	for _, c := range r.Conversations {
		if c.State == state {
			n++
		}
	}
	return n
}
