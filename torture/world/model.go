//go:build linux

package world

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// ModelName is the model of all users, and Config the part of the config file that knows it.
const (
	ModelName = "openai/torture"
	Config    = "models:\n  openai/torture: {window: 200000, max_output: 1000, input: 3, output: 15}\n"
)

// What a call costs, in billionths of a dollar.
const (
	inputTokens, outputTokens = 1000, 100
	callCost                  = inputTokens*3000 + outputTokens*15000
)

// Mood is how the model answers.
type Mood struct {
	// Pause comes between two pieces of an answer.
	Pause time.Duration
	// Break ends an answer early, and Status refuses it: every so many calls (Every, 1 for all).
	Break  llmtest.Break
	Status int
	Every  int
}

// Model is the scripted model. A message tells it what to do, see Task.
type Model struct {
	Host *Host
	// URL is its base URL.
	URL string

	server *llmtest.Server

	mu     sync.Mutex
	mood   Mood
	calls  int
	billed map[string]int64 // by key
}

// Task is the text of a message: in this turn, the model runs so many commands, each of
// which leaves a mark and takes some time before and after it.
func Task(turn, steps int, before, after time.Duration) string {
	return fmt.Sprintf("torture turn=%d steps=%d before=%.2f after=%.2f", turn, steps, before.Seconds(), after.Seconds())
}

var taskText = regexp.MustCompile(`torture turn=(\d+) steps=(\d+) before=([\d.]+) after=([\d.]+)`)

func newModel(w *World) (*Model, error) {
	m := &Model{billed: map[string]int64{}}
	var err error
	if m.Host, err = w.Network.Host("model"); err != nil {
		return nil, err
	}
	l, err := w.Network.Listen(m.Host, modelPort)
	if err != nil {
		return nil, err
	}
	m.server = llmtest.StartOn(l, m.answer)
	m.URL = m.server.URL + "/v1"
	return m, nil
}

// Set changes how the model answers from now on.
func (m *Model) Set(mood Mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mood = mood
}

// Billed is what the model charged for a key, in US dollars. It charges whole answers only.
func (m *Model) Billed(key string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(m.billed[key]) / 1e9
}

// Rest closes connections that servers keep open for later calls.
func (m *Model) Rest() { m.server.Rest() }

// Complaints lists requests that a real provider would have refused.
func (m *Model) Complaints() []string { return m.server.Complaints() }

func (m *Model) answer(a llmtest.Asked) llmtest.Reply {
	r := script(a)
	r.Usage = llm.Usage{Input: inputTokens, Output: outputTokens}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	r.Pause = m.mood.Pause
	if m.mood.Every > 0 && m.calls%m.mood.Every == 0 {
		if m.mood.Status != 0 {
			return llmtest.Reply{Status: m.mood.Status, Message: "The model is overloaded.", RetryAfter: "1"}
		}
		if r.Break = m.mood.Break; r.Break != "" {
			return r
		}
	}
	m.billed[strings.TrimPrefix(a.Header.Get("Authorization"), "Bearer ")] += callCost
	return r
}

// script is the answer to a request: the next command of the last task, or its end.
func script(a llmtest.Asked) llmtest.Reply {
	task, done := []string(nil), 0
	for _, m := range a.Messages {
		switch m.Role {
		case llm.User:
			if found := taskText.FindStringSubmatch(m.Text); found != nil {
				task, done = found, 0
			}
		case llm.ToolResult:
			done++
		}
	}
	if task == nil || len(a.Tools) == 0 {
		return llmtest.Reply{Text: "There is nothing to do."}
	}
	if steps, _ := strconv.Atoi(task[2]); done >= steps {
		return llmtest.Reply{Text: "Turn " + task[1] + " is done, and this sentence is long enough to be cut somewhere."}
	}
	command := fmt.Sprintf("sleep %s; echo m-%s.%d >> marks && sleep %s && echo done", task[3], task[1], done, task[4])
	args, _ := json.Marshal(map[string]string{"command": command})
	call := llm.Call{ID: fmt.Sprintf("call_%s_%d", task[1], done), Name: "execute_bash", Args: args}
	return llmtest.Reply{Calls: []llm.Call{call}}
}

// Overloaded is the status of a provider that has too much to do.
const Overloaded = http.StatusServiceUnavailable
