package v0

import (
	"hash/fnv"

	"deckhand/internal/session"
)

// AppPorts are the two ports on which the agent has applications for the user listen
// when a legacy front end is served. The front end asks for them once, so they are the
// same for the whole life of a conversation. They lie where the legacy server's did.
func AppPorts(id session.ID) []int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	n := int(h.Sum32() % 5000)
	return []int{50000 + n, 55000 + n}
}
