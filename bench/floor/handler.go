// Package floor is the cheapest implementation of the server's job. The server's figures are
// compared with it.
package floor

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The floor of a request: a bare handler that checks a key, decodes the body
// and makes one durable insert, together with all others that wait. Nothing
// that answers such a request durably can do less.

// Key is as long as a real key, and as secret as a benchmark's data.
const Key = "floor_0123456789abcdef0123456789abcdef0123456789abcdef"

// row is one insert that waits.
type row struct {
	id   string
	at   int64
	body []byte
	done chan error
}

// writer commits whatever is waiting in one transaction.
type writer struct {
	db    *Raw
	queue chan *row
}

func (w *writer) loop() {
	var group []*row
	for first := range w.queue {
		group = append(group[:0], first)
		for waiting := true; waiting; {
			select {
			case next, ok := <-w.queue:
				if waiting = ok; ok {
					group = append(group, next)
				}
			default:
				waiting = false
			}
		}
		err := w.db.together(group)
		for _, r := range group {
			r.done <- err
		}
	}
}

// body holds the fields of both bodies that are sent: it is decoded as a
// handler without any rules would.
type body struct {
	InitialUserMsg *string `json:"initial_user_msg"`
	LLMModel       *string `json:"llm_model"`
	MaxIterations  *int    `json:"max_iterations"`
	GitUserName    *string `json:"git_user_name"`
}

type answer struct {
	Status         string `json:"status"`
	ConversationID string `json:"conversation_id"`
}

func (w *writer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(rw, "OK")
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Session-API-Key")), []byte(Key)) != 1 {
		http.Error(rw, "Unauthorized", http.StatusUnauthorized)
		return
	}
	sent := make([]byte, max(r.ContentLength, 0))
	var body body
	if _, err := io.ReadFull(r.Body, sent); err != nil || json.Unmarshal(sent, &body) != nil {
		http.Error(rw, "not JSON", http.StatusUnprocessableEntity)
		return
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	insert := &row{id: hex.EncodeToString(id[:]), at: time.Now().UnixMicro(), body: sent, done: make(chan error, 1)}
	w.queue <- insert
	if err := <-insert.done; err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	answer, _ := json.Marshal(answer{Status: "ok", ConversationID: insert.id})
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = rw.Write(answer)
}

// Serve is the whole of the floor's process.
func Serve(ctx context.Context, addr, file, table string) error {
	db, err := OpenRaw(ctx, file, table)
	if err != nil {
		return err
	}
	w := &writer{db: db, queue: make(chan *row, 1024)}
	go w.loop()
	web := &http.Server{Addr: addr, Handler: w, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
