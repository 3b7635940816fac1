package replica

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// headSize is an upper bound for the parts of a message whose size does not depend on its content: names, IDs and the seal.
const headSize = 700

// room returns how many bytes of content a message may have.
func (r *Replica) room() int { return max(64, r.conn.MaxPayload()-headSize) }

// send sends a message to the other servers. It may be lost. Only one goroutine sends messages of a kind, so that they arrive in the
// order of their numbers.
func (r *Replica) send(kind string, message any) {
	content, err := json.Marshal(message)
	if err == nil { // strings and numbers always encode
		head := fmt.Appendf(nil, "%s %d\n", r.Member, r.sent.Add(1))
		r.conn.Publish(r.subject(kind), r.seal.Seal(r.subject(kind), append(head, content...)))
	}
}

// receive calls handle for messages of other servers until stop is called. Others on the NATS server can repeat messages, so those that
// are not newer than the last one of their sender are ignored.
func (r *Replica) receive(kind string, handle func(content []byte)) (stop func(), err error) {
	last := map[string]int64{} // by sender
	return r.conn.Subscribe(r.subject(kind), func(sealed []byte) {
		data, ok := r.seal.Open(r.subject(kind), sealed)
		if !ok {
			return
		}
		head, content, _ := bytes.Cut(data, []byte("\n"))
		var from string
		var number int64
		if _, err := fmt.Sscan(string(head), &from, &number); err != nil || from == r.Member || number <= last[from] {
			return
		}
		last[from] = number
		handle(content)
	})
}
