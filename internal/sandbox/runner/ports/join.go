package ports

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// bufferSize is small because every idle connection holds two of them.
const bufferSize = 16 << 10

// join carries bytes both ways until both sides have ended, one of them breaks,
// or ctx ends; then both are closed. A side that has ended is told to the other,
// which may go on sending.
func join(ctx context.Context, a, b net.Conn) {
	shut := sync.OnceFunc(func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer shut()
	stop := context.AfterFunc(ctx, shut)
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { carry(a, b, shut) })
	carry(b, a, shut)
	back.Wait()
}

// carry copies one way.
func carry(to, from net.Conn, shut func()) {
	// Without the methods that would let io.Copy choose its own buffer.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, bufferSize))
	if err != nil || closeWrite(to) != nil {
		shut()
	}
}

// closeWrite ends one direction.
func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
