package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// instant is a model that costs next to nothing. It has a teacher, which understands and checks
// requests as a provider does; the teacher gives the first answer of each kind, which is then
// repeated.
type instant struct {
	teacher *llmtest.Server
	web     *httptest.Server

	mu      sync.Mutex
	learned map[bool][]byte // by whether a command's result was shown
}

func newInstant(answer func(llmtest.Asked) llmtest.Reply) *instant {
	m := &instant{teacher: llmtest.Start(answer), learned: map[bool][]byte{}}
	m.web = httptest.NewServer(m)
	return m
}

func (m *instant) close() {
	m.web.CloseClientConnections()
	m.web.Close()
	m.teacher.Close()
}

// ServeHTTP implements http.Handler.
func (m *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	shown := bytes.LastIndex(body.Bytes(), []byte(`"role":"tool"`)) > bytes.LastIndex(body.Bytes(), []byte(`"role":"user"`))
	answer, err := m.answer(r.URL.Path, body, shown)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = w.Write(answer)
}

func (m *instant) answer(path string, body io.Reader, shown bool) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.learned[shown]; known != nil {
		return known, nil
	}
	res, err := http.Post(m.teacher.URL+path, "application/json", body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	if err == nil {
		m.learned[shown] = answer
	}
	return answer, err
}

// config is how to reach it.
func (m *instant) config(client *http.Client) llm.Config {
	return llm.Config{Model: modelName, BaseURL: m.web.URL + "/v1", Client: client}
}
