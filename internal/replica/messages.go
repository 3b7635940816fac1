package replica

import "encoding/json"

// headSize is an upper bound for the parts of a message whose size does not depend on its content: names, IDs and the seal.
const headSize = 700

// room returns how many bytes of content a message may have.
func (r *Replica) room() int { return max(64, r.conn.MaxPayload()-headSize) }

// say sends a message to the other servers. It may be lost.
func (r *Replica) say(kind string, message any) {
	data, err := json.Marshal(message)
	if err == nil { // strings and numbers always encode
		r.conn.Publish(r.subject(kind), r.seal.Seal(r.subject(kind), data))
	}
}

// hear calls handle for messages of all servers, including this one, until stop is called.
func (r *Replica) hear(kind string, handle func(data []byte)) (stop func(), err error) {
	return r.conn.Subscribe(r.subject(kind), func(sealed []byte) {
		if data, ok := r.seal.Open(r.subject(kind), sealed); ok {
			handle(data)
		}
	})
}
