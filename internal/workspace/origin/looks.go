package origin

import (
	"sync"

	"deckhand/internal/session"
)

// Looks remembers checkpoints that were made for comparisons and that no event has. The zero value is ready to use.
type Looks struct{ byID sync.Map }

// Last returns the last checkpoint of a session that has only changes that are not the agent's, 0 if there is none.
func (l *Looks) Last(id session.ID) int {
	n, _ := l.byID.Load(id)
	last, _ := n.(int)
	return last
}

// Note remembers a checkpoint that has only changes that are not the agent's. It returns its number.
func (l *Looks) Note(id session.ID, number int) int {
	l.byID.Store(id, number)
	return number
}
