package main

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

// floorKey is as long as a real key, and as secret as a benchmark's data.
const floorKey = "floor_0123456789abcdef0123456789abcdef0123456789abcdef"

// row is one insert that waits.
type row struct {
	id   string
	at   int64
	body []byte
	done chan error
}

// floorWriter commits whatever is waiting in one transaction.
type floorWriter struct {
	db    *raw
	queue chan *row
}

func (w *floorWriter) loop() {
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

// floorBody holds the fields of both bodies that are sent: it is decoded as a
// handler without any rules would.
type floorBody struct {
	InitialUserMsg *string `json:"initial_user_msg"`
	LLMModel       *string `json:"llm_model"`
	MaxIterations  *int    `json:"max_iterations"`
	GitUserName    *string `json:"git_user_name"`
}

type floorAnswer struct {
	Status         string `json:"status"`
	ConversationID string `json:"conversation_id"`
}

func (w *floorWriter) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(rw, "OK")
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Session-API-Key")), []byte(floorKey)) != 1 {
		http.Error(rw, "Unauthorized", http.StatusUnauthorized)
		return
	}
	sent := make([]byte, max(r.ContentLength, 0))
	var body floorBody
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
	answer, _ := json.Marshal(floorAnswer{Status: "ok", ConversationID: insert.id})
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = rw.Write(answer)
}

// serveFloor is the whole of the floor's process.
func serveFloor(ctx context.Context, addr, file, table string) error {
	db, err := openRaw(ctx, file, table)
	if err != nil {
		return err
	}
	w := &floorWriter{db: db, queue: make(chan *row, 1024)}
	go w.loop()
	web := &http.Server{Addr: addr, Handler: w, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
