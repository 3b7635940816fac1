package engine

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A poll and the packet that closes the connection may be sent at a time, and the poll
// arrive last. It is answered as if it had been first, once.
func TestPollArrivesAfterTheClientClosed(t *testing.T) {
	g := newRig(t, Options{}, echo)
	id := g.open()
	found := g.conn(id)
	g.want("POST", id, "1", http.StatusOK, "ok")
	if n := g.server.Len(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	g.want("POST", id, hello, http.StatusBadRequest, saysRequest)
	if _, err := g.dial(socketQuery(id)); err == nil {
		t.Error("a WebSocket was opened")
	}
	g.want("GET", id, "", http.StatusOK, "6")
	g.want("GET", id, "", http.StatusBadRequest, saysSession)
	slow := httptest.NewRecorder() // the answer to a poll that found the connection before
	found.servePoll(slow, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if slow.Code != http.StatusBadRequest {
		t.Errorf("one more poll was answered with %d %q", slow.Code, slow.Body)
	}
}

// A closed connection is as little for others as an open one.
func TestLastPollIsForTheClientAlone(t *testing.T) {
	g := newRig(t, Options{Continue: func(_, next *http.Request) error {
		if next.URL.Query().Get("key") != "right" {
			return errors.New("not you")
		}
		return nil
	}}, echo)
	id := g.open()
	g.want("POST", id+"&key=right", "1", http.StatusOK, "ok")
	g.want("GET", id+"&key=wrong", "", http.StatusForbidden, `{"code":4,"message":"not you"}`)
	g.want("GET", id+"&key=right", "", http.StatusOK, "6")
}

// Clients that close and do not poll again leave nothing behind: few are waited for, and
// those not for long.
func TestLastPollIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, echo)
		var ids []string
		for range mostOwed + 10 {
			id := g.open()
			g.want("POST", id, "1", http.StatusOK, "ok")
			ids = append(ids, id)
		}
		left := func() int {
			g.server.mu.Lock()
			defer g.server.mu.Unlock()
			if len(g.server.owed) != len(g.server.conns) {
				t.Errorf("%d of %d connections have a last poll to answer", len(g.server.owed), len(g.server.conns))
			}
			return len(g.server.conns)
		}
		if n := left(); n != mostOwed {
			t.Errorf("%d connections are kept", n)
		}
		g.want("GET", ids[0], "", http.StatusOK, "6") // and there is room again
		again := g.open()
		g.want("POST", again, "1", http.StatusOK, "ok")
		g.want("GET", again, "", http.StatusOK, "6")

		<-time.After(owedTime)
		synctest.Wait()
		if n := left(); n != 0 {
			t.Errorf("%d connections are kept", n)
		}
		g.want("GET", ids[1], "", http.StatusBadRequest, saysSession)
	})
}
