package main

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"deckhand/bench/history"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/load"
	"deckhand/internal/tool/bash"
)

// modelName is an unknown model: no price, no known window.
const modelName = "openai/fake"

// oneCommand is the model: it asks for one command, then says what came of it.
func oneCommand(a llmtest.Asked) llmtest.Reply {
	if a.Messages[len(a.Messages)-1].Role == llm.ToolResult {
		return llmtest.Reply{Text: "The shell says hi.", Fragment: 100}
	}
	call := llm.Call{ID: "call_1", Name: bash.Name, Args: json.RawMessage(`{"command":"` + load.Command + `"}`)}
	return llmtest.Reply{Calls: []llm.Call{call}, Fragment: 100}
}

// close deletes the conversations, since sandboxes outlive their server, and
// ends the server when the last one is gone.
func (o *office) close() {
	_ = o.deleteAll()
	o.Stop()
}

// deleteAll deletes the conversations and waits until the last sandbox is gone.
func (o *office) deleteAll() error {
	_, err := load.Share(16, len(o.chats), time.Minute, func(_, i int) error {
		o.chats[i].Close()
		return o.chats[i].Delete()
	})
	o.chats = nil
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 { // a minute
		if n, failed := o.metric("deckhand_sandboxes"); failed != nil || n == 0 {
			return errors.Join(err, failed)
		}
		<-tick.C
	}
	return errors.New("sandboxes of deleted conversations stay")
}

// metric reads one of the server's own figures.
func (o *office) metric(name string) (float64, error) { return o.Metric(o.metrics, name) }

// open makes a conversation of the next user and follows it to the end of its first turn.
func (o *office) open() (*load.Chat, error) {
	o.mu.Lock()
	key := o.keys[o.opened%len(o.keys)]
	o.opened++
	o.mu.Unlock()
	c, err := load.Open(o.Addr, key, history.FirstMessage)
	if c != nil {
		o.mu.Lock()
		o.chats = append(o.chats, c)
		o.mu.Unlock()
	}
	return c, err
}

// openMany opens n of them at once, and waits for all.
func (o *office) openMany(n int) ([]*load.Chat, []error) {
	chats, failures := make([]*load.Chat, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { chats[i], failures[i] = o.open() })
	}
	wait.Wait()
	return chats, failures
}
