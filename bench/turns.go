package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/tool/bash"
)

// turns measures what people wait for: a message, a model that has one command
// run, its result, and the model's answer. The model answers at once, so that
// all the time is ours.
func turns(b *bench) error {
	return errors.Join(oneTurn(b), manyTurns(b), longSteps(b), crowdOfTurns(b))
}

// office is the real server with a model of its own and sandboxes of this machine.
type office struct {
	*child
	model *instant
	// metrics is the address of its own for metrics and profiles, if it has one.
	metrics string

	mu    sync.Mutex
	chats []*chat
}

func (b *bench) office() (*office, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the sandboxes' own users must get through
		return nil, err
	}
	args := []string{"--log-level", "warn", "--sandbox", "local"}
	metrics := ""
	if b.profiles != "" {
		if metrics, err = freeAddr(); err != nil {
			return nil, err
		}
		args = append(args, "--metrics-addr", metrics)
	}
	c, err := b.deckhand(dir, args...)
	if err != nil {
		return nil, err
	}
	o := &office{child: c, model: newInstant(oneCommand), metrics: metrics}
	body := fmt.Sprintf(`{"llm_model":%q,"llm_base_url":%q}`, modelName, o.model.web.URL+"/v1")
	if _, err := ask1(c.addr, message("POST", settingsPath, c.addr, c.key, body)); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// modelName is an unknown model: no price, no known window.
const modelName = "openai/fake"

// theCommand is what the model has run.
const theCommand = "echo hi"

// oneCommand is the model: it asks for one command, then says what came of it.
func oneCommand(a llmtest.Asked) llmtest.Reply {
	if a.Messages[len(a.Messages)-1].Role == llm.ToolResult {
		return llmtest.Reply{Text: "The shell says hi.", Fragment: 100}
	}
	call := llm.Call{ID: "call_1", Name: bash.Name, Args: json.RawMessage(`{"command":"` + theCommand + `"}`)}
	return llmtest.Reply{Calls: []llm.Call{call}, Fragment: 100}
}

// close deletes the conversations, since sandboxes outlive their server, and
// ends the server when the last one is gone.
func (o *office) close() {
	_ = o.deleteAll()
	o.stop()
	o.model.close()
}

// deleteAll deletes the conversations and waits until the last sandbox is gone.
func (o *office) deleteAll() error {
	for _, c := range o.chats {
		_, _ = ask1(o.addr, message("DELETE", c.path, o.addr, o.key, ""))
		c.close()
	}
	o.chats = nil
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 { // a minute
		if n, err := o.metric("deckhand_sandboxes"); err != nil || n == 0 {
			return err
		}
		<-tick.C
	}
	return errors.New("sandboxes of deleted conversations stay")
}

// metric reads one of the server's own figures.
func (o *office) metric(name string) (float64, error) {
	addr := cmp.Or(o.metrics, o.addr)
	text, err := ask1(addr, message("GET", "/metrics", addr, o.key, ""))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the server does not say %s", name)
}

// chat is a conversation that its person follows.
type chat struct {
	*talk
	in *stream
}

// open makes a conversation and follows it to the end of its first turn, which
// starts the sandbox.
func (o *office) open() (*chat, error) {
	t, err := o.create()
	if err != nil {
		return nil, err
	}
	c := &chat{talk: t}
	o.mu.Lock()
	o.chats = append(o.chats, c)
	o.mu.Unlock()
	if c.in, err = follow(o.addr, t.path+"/events/stream", o.key, 0); err != nil {
		return c, err
	}
	return c, c.await()
}

// openMany opens n of them at once, and waits for all.
func (o *office) openMany(n int) ([]*chat, []error) {
	chats, failures := make([]*chat, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { chats[i], failures[i] = o.open() })
	}
	wait.Wait()
	return chats, failures
}

func (c *chat) close() {
	c.link.close()
	if c.in != nil {
		c.in.link.close()
	}
}

// turn says something and waits until the agent has answered.
func (c *chat) turn() error {
	if err := c.say(); err != nil {
		return err
	}
	return c.await()
}

// turnTime is how long a turn may take before it counts as failed.
const turnTime = 2 * time.Minute

// What frames say.
var (
	ranWell  = []byte(`"observation":"run","content":"hi`)
	newState = []byte(`"observation":"agent_state_changed"`)
	working  = [][]byte{[]byte(`"agent_state":"loading"`), []byte(`"agent_state":"running"`)}
	awaiting = []byte(`"agent_state":"awaiting_user_input"`)
)

// await reads up to the end of a turn. A turn in which the command was not run
// has failed, whatever its end says.
func (c *chat) await() error {
	_ = c.in.link.conn.SetReadDeadline(time.Now().Add(turnTime))
	ran := false
	for {
		data, err := c.in.field("data:")
		switch {
		case err != nil:
			return err
		case bytes.Contains(data, ranWell):
			ran = true
		case !bytes.Contains(data, newState), bytes.Contains(data, working[0]), bytes.Contains(data, working[1]):
		case bytes.Contains(data, awaiting) && ran:
			return nil
		default:
			return fmt.Errorf("a turn ended with %s", data)
		}
	}
}
