package mcp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/clip"
)

// watcher passes the progress of one call on while the call lasts.
type watcher struct {
	mu   sync.Mutex
	show func([]byte) // nil once the call is over
}

// watch passes what is heard under the token to show. After done, show is not
// called any more.
func (r *remote) watch(token string, show func([]byte)) (done func()) {
	w := &watcher{show: show}
	r.mu.Lock()
	r.progress[token] = w
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		if r.progress[token] == w {
			delete(r.progress, token)
		}
		r.mu.Unlock()
		w.mu.Lock()
		w.show = nil
		w.mu.Unlock()
	}
}

// heard is told of progress by the library.
func (r *remote) heard(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	r.mu.Lock()
	w := r.progress[token]
	r.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.show != nil {
		w.show([]byte(progressLine(req.Params)))
	}
}

// progressLine is "3/10 what is being done".
func progressLine(p *sdk.ProgressNotificationParams) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	text := number(p.Progress)
	if p.Total > 0 {
		text += "/" + number(p.Total)
	}
	if p.Message != "" {
		text += " " + clip.MiddleRunes(strings.ToValidUTF8(p.Message, "�"), maxError)
	}
	return fmt.Sprintln(text)
}
