package connect_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
)

// A call without an answer ends by itself and may be made again,
// whether silence comes before the answer or in the middle of it.
func TestSilence(t *testing.T) {
	for name, begin := range map[string]string{"before": "", "within": "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I\"}}]}\n\n"} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if begin != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}))
			defer s.Close()
			err := silent(t, s, 50*time.Millisecond)
			var e *llm.Error
			if !errors.As(err, &e) || !e.Retry() || e.Began != (begin != "") || !strings.Contains(e.Message, "sent no data for 50ms") {
				t.Errorf("%v", err)
			}
			s.Close() // waits until the server is told
		})
	}
}

// Comments are a sign of life, however long the answer takes.
func TestNoSilence(t *testing.T) {
	const limit = 500 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(limit / 50)
		defer tick.Stop()
		for range 75 { // longer than the limit in all
			fmt.Fprint(w, ": at work\n\n")
			_ = http.NewResponseController(w).Flush()
			<-tick.C
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I\"},\"finish_reason\":\"stop\"}]}\n\n")
	}))
	defer s.Close()
	if err := silent(t, s, limit); err != nil {
		t.Error(err)
	}
}

// silent asks a server, and gives the error that it ends with.
func silent(t *testing.T, s *httptest.Server, limit time.Duration) (err error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	m, err := connect.Connector{Catalogue: catalogue.New(nil), Silence: limit}.Open(llm.Config{Model: "acme/m", BaseURL: s.URL, Client: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}) {
		err = failed
	}
	return err
}
