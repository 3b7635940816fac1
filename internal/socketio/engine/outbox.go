package engine

// packetCost is what a waiting packet takes beside its data, so that empty
// messages cannot pile up either.
const packetCost = 64

// outbox is what waits for the client. What is being written counts until it
// has been: only then is there room again.
type outbox struct {
	limit   int
	packets []packet
	held    int
	room    chan struct{} // closed when something has been written; nil without waiters
}

func cost(p packet) int { return packetCost + len(p.data) }

// fits reports room for so much. Anything fits into an empty box.
func (b *outbox) fits(n int) bool { return b.held == 0 || b.held+n <= b.limit }

func (b *outbox) push(p packet) {
	b.packets = append(b.packets, p)
	b.held += cost(p)
}

// pop takes the first packet. The caller tells written when it is.
func (b *outbox) pop() (packet, bool) {
	if len(b.packets) == 0 {
		return packet{}, false
	}
	p := b.packets[0]
	b.packets[0] = packet{} // its data may go when it has been written
	b.packets = b.packets[1:]
	if len(b.packets) == 0 {
		b.packets = nil // a quiet client keeps nothing
	}
	return p, true
}

// popUpTo takes packets for a polling body of so many bytes, but at least one.
func (b *outbox) popUpTo(bytes int64) []packet {
	var batch []packet
	var total int64
	for len(b.packets) > 0 {
		total += int64(b.packets[0].recordLen()) + 1
		if len(batch) > 0 && total > bytes {
			break
		}
		p, _ := b.pop()
		batch = append(batch, p)
	}
	return batch
}

// written makes room.
func (b *outbox) written(n int) {
	b.held -= n
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// wait is closed when there may be room.
func (b *outbox) wait() <-chan struct{} {
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// drop forgets what waits.
func (b *outbox) drop() {
	for {
		p, ok := b.pop()
		if !ok {
			return
		}
		b.held -= cost(p)
	}
}
