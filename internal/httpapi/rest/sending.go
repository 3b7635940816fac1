package rest

import (
	"errors"
	"net/http"
	"time"
)

// ErrTooMuch ends an answer that is longer than it may be.
var ErrTooMuch = errors.New("the data exceeds the limit")

// sendTime is how long a client may take to accept a piece of what is sent.
const (
	sendTime  = 30 * time.Second
	sendPiece = 64 << 10
)

// Download sends an answer as it is made. Before its first byte an error is an
// answer like any other; after it, the connection breaks off, so that half an
// answer does not look like a whole one.
type Download struct {
	w       http.ResponseWriter
	control *http.ResponseController
	kind    string
	// Opening is what the answer begins with, once it is clear that there will be one.
	Opening string
	begun   bool
	Limit   int // of what may be sent; 0 is none
	sent    int
}

func NewDownload(w http.ResponseWriter, kind string) *Download {
	return &Download{w: w, control: http.NewResponseController(w), kind: kind}
}

// All runs what makes the answer.
func (o *Download) All(make func() error) error {
	err := make()
	if err == nil {
		_, err = o.Write(nil) // begins, also if there is nothing in it
		_ = o.control.SetWriteDeadline(time.Time{})
	}
	if err != nil && o.begun {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		o.w.Header().Del("Content-Disposition")
	}
	return err
}

func (o *Download) begin() []byte {
	if o.begun {
		return nil
	}
	o.begun = true
	o.w.Header().Set("Content-Type", o.kind)
	o.w.WriteHeader(http.StatusOK)
	return []byte(o.Opening)
}

func (o *Download) Put(s string) error {
	_, err := o.Write([]byte(s))
	return err
}

func (o *Download) Write(b []byte) (int, error) {
	if o.sent += len(b); o.Limit > 0 && o.sent > o.Limit {
		return 0, ErrTooMuch
	}
	for _, rest := range [][]byte{o.begin(), b} {
		for len(rest) > 0 {
			// Not every writer has deadlines (a test's recorder); those do not block either.
			_ = o.control.SetWriteDeadline(time.Now().Add(sendTime))
			n, err := o.w.Write(rest[:min(len(rest), sendPiece)])
			if err != nil {
				return 0, err
			}
			rest = rest[n:]
		}
	}
	return len(b), nil
}
