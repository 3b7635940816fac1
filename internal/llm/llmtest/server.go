package llmtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// keep is how many requests a server remembers, so that one that runs for long
// does not fill the memory.
const keep = 4096

// state is the running part of a Server.
type state struct {
	http    *httptest.Server
	answer  func(Asked) Reply
	closing chan struct{}
	close   sync.Once

	mu         sync.Mutex
	keep       int
	asked      []Asked
	complaints []string
}

// Start starts a server outside of tests. Close it.
func Start(answer func(Asked) Reply) *Server { return StartOn(nil, answer) }

// StartOn is Start with a listener, or one on the loopback interface if it is nil.
func StartOn(l net.Listener, answer func(Asked) Reply) *Server {
	s := &Server{state: state{answer: answer, closing: make(chan struct{}), keep: keep}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if l != nil {
		s.http.Listener.Close()
		s.http.Listener = l
	}
	s.http.Start()
	s.URL = s.http.URL
	return s
}

// Close ends it and waits for its requests. Those that hang end with it.
func (s *Server) Close() {
	s.close.Do(func() {
		close(s.closing)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// Rest closes connections that wait for a request, and each other one after its request.
func (s *Server) Rest() { s.http.Config.SetKeepAlivesEnabled(false) }

// Keep sets how many requests are remembered, from now on.
func (s *Server) Keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = n
	s.asked = tail(s.asked, n)
}

// Asked lists the requests so far, as many of the newest as are kept.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Complaints lists what was wrong with requests that were refused: each of them
// is an adapter's mistake.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

// tail are the last n of a list. It copies now and then, so that what was cut
// off can be freed.
func tail[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	all = all[len(all)-n:]
	if cap(all) < 2*n {
		return append(make([]T, 0, 2*n+1), all...)
	}
	return all
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		listModels(w)
		return
	}
	at := slices.IndexFunc(wires, func(x wire) bool { return r.Method == http.MethodPost && x.serves(r.URL.Path) })
	if at < 0 {
		http.NotFound(w, r)
		return
	}
	speak := wires[at]
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away while it spoke
	}
	asked, err := speak.read(r, body)
	if err == nil {
		err = WellFormed(asked)
	}
	asked.Header, asked.Body = r.Header, body
	gone := make(chan struct{})
	// Not the context's own channel: that one is closed after a good answer too.
	stop := context.AfterFunc(r.Context(), func() { close(gone) })
	defer stop()
	asked.Gone = gone
	s.note(asked, err)
	if err != nil {
		fail(w, speak, Reply{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	s.reply(w, speak, asked, s.answer(asked))
}

// note keeps a request and what was wrong with it.
func (s *Server) note(a Asked, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = tail(append(s.asked, a), s.keep)
	if err != nil {
		s.complaints = append(s.complaints, err.Error())
	}
}

// reply sends an answer.
func (s *Server) reply(w http.ResponseWriter, speak wire, a Asked, r Reply) {
	if !s.wait(a, r.Delay) {
		return
	}
	switch {
	case r.Body != "":
		sendBody(w, r)
	case r.Status != 0 && r.Status != http.StatusOK:
		fail(w, speak, r)
	case a.Stream:
		s.stream(w, speak, a, r)
	default:
		s.whole(w, speak, a, r)
	}
}

// stream sends the frames of an answer, or half of them and then what Break says.
func (s *Server) stream(w http.ResponseWriter, speak wire, a Asked, r Reply) {
	frames := speak.stream(a, r)
	if r.Break != "" {
		frames = frames[:(len(frames)+1)/2]
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	var buf []byte
	for i, f := range frames {
		if i > 0 && r.Pause > 0 {
			w.Write(buf)
			w.(http.Flusher).Flush()
			buf = buf[:0]
			if !s.wait(a, r.Pause) {
				return
			}
		}
		buf = f.append(buf)
	}
	switch r.Break {
	case Malformed:
		buf = frame{event: frames[len(frames)-1].event, data: []byte(`{"this frame": is not JSON`)}.append(buf)
	case ErrorLate:
		buf = speak.late(r).append(buf)
	}
	w.Write(buf)
	s.brk(w, a, r)
}

// whole sends an answer in one piece, or the half of it and then what Break says.
func (s *Server) whole(w http.ResponseWriter, speak wire, a Asked, r Reply) {
	if r.Break == ErrorLate {
		r.Status = http.StatusInternalServerError
		fail(w, speak, r)
		return
	}
	body := speak.whole(a, r)
	if r.Break != "" {
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
	s.brk(w, a, r)
}

// brk ends a connection that goes wrong. What was sent before arrives first.
func (s *Server) brk(w http.ResponseWriter, a Asked, r Reply) {
	if r.Break != Drop && r.Break != Hang {
		return
	}
	w.(http.Flusher).Flush()
	if r.Break == Drop {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-a.Gone:
	case <-s.closing:
	}
}

// wait waits, and reports whether the client is still there.
func (s *Server) wait(a Asked, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.Gone:
	case <-s.closing:
	}
	return false
}

// append writes a frame as server-sent events have it.
func (f frame) append(b []byte) []byte {
	if f.event != "" {
		b = append(b, "event: "...)
		b = append(b, f.event...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, f.data...)
	return append(b, "\n\n"...)
}

// fail sends an error.
func fail(w http.ResponseWriter, speak wire, r Reply) {
	if r.Message == "" {
		r.Message = http.StatusText(r.Status)
	}
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Status)
	w.Write(speak.failure(r))
}

// sendBody sends a body that the script wrote itself.
func sendBody(w http.ResponseWriter, r Reply) {
	kind := "application/json"
	switch {
	case strings.HasPrefix(r.Body, "data:"), strings.HasPrefix(r.Body, "event:"), strings.HasPrefix(r.Body, ":"):
		kind = "text/event-stream"
	case strings.HasPrefix(r.Body, "<"):
		kind = "text/html"
	}
	w.Header().Set("Content-Type", kind)
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.WriteHeader(max(r.Status, http.StatusOK))
	io.WriteString(w, r.Body)
}

// listModels answers GET /v1/models.
func listModels(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"object":"list","data":[{"id":"test","object":"model","created":0,"owned_by":"llmtest"}]}`)
}
