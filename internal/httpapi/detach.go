package httpapi

import (
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"
)

// Detachable implements rest.Detacher: it is true for connections that a handler can
// take over.
func (w *recorder) Detachable() bool {
	_, ok := w.ResponseWriter.(http.Hijacker)
	return ok
}

// Detach implements rest.Detacher.
func (w *recorder) Detach(run func()) { w.detached = run }

// goOn runs a detached stream to its end, and then ends its request. What net/http
// needs for a request is let go, which is the purpose of detaching.
func (d *Handler) goOn(w *recorder, r *http.Request, begin time.Time, end func(status int)) {
	run := w.detached
	w.detached, w.ResponseWriter = nil, nil
	if id := r.PathValue("conversation_id"); id != "" {
		w.session = id
	}
	r = (&http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path}}).WithContext(r.Context())
	d.streams.start(func() {
		defer func() {
			if p := recover(); p != nil {
				d.Logger.Error("panic in a stream", "request", w.id, "panic", p, "stack", string(debug.Stack()))
			}
			end(w.status)
			d.finished(w, r, w.id, time.Since(begin))
		}()
		run()
	})
}

// streams are the detached ones.
type streams struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// start runs a stream in a goroutine of its own. Once all are being waited for, a
// stream that comes late is run here: it ends at once.
func (s *streams) start(run func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.running.Go(run)
	}
	s.mu.Unlock()
	if closed {
		run()
	}
}

// wait returns when all streams have ended. It may be called twice.
func (s *streams) wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}
