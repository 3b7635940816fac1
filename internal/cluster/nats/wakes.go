package nats

import (
	"encoding/json"

	"deckhand/internal/cluster"
)

// Wakes implements cluster.Wakes.
type Wakes struct {
	Conn *Conn
	// Installation separates installations that share a NATS server, and copies of an installation.
	Installation string
	Seal         Seal
}

// Subject returns the subject of a kind of message.
func (w Wakes) Subject(kind string) string { return "deckhand." + w.Installation + "." + kind }

// Publish implements cluster.Wakes.
func (w Wakes) Publish(wake cluster.Wake) {
	data, err := json.Marshal(wake)
	if err == nil { // strings and numbers always encode
		w.Conn.Publish(w.Subject("wake"), w.Seal.Seal(w.Subject("wake"), data))
	}
}

// Subscribe implements cluster.Wakes.
func (w Wakes) Subscribe(member string, handle func(cluster.Wake)) (stop func(), err error) {
	return w.Conn.Subscribe(w.Subject("wake"), func(sealed []byte) {
		var wake cluster.Wake
		if data, ok := w.Seal.Open(w.Subject("wake"), sealed); ok && json.Unmarshal(data, &wake) == nil && wake.From != member {
			handle(wake)
		}
	})
}

var _ cluster.Wakes = Wakes{}
