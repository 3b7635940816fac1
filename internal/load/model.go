package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ModelName names the model in settings: none that is known, so without a price and a window.
const ModelName = "openai/instant"

// Command is what the model has run.
const Command = "echo hi"

// Model is an OpenAI-compatible model on loopback that answers at once: to a message with a
// call of the shell tool, and to the result of a command with a sentence.
type Model struct {
	// URL is its base URL.
	URL string

	web   *http.Server
	calls atomic.Int64

	mu   sync.Mutex
	call *shellCall // found in the first request that has tools
}

// shellCall is how the program that asks has a command run.
type shellCall struct{ name, args string }

// StartModel starts one.
func StartModel() (*Model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Model{URL: "http://" + l.Addr().String() + "/v1"}
	m.web = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.web.Serve(l) }()
	return m, nil
}

// Close ends it.
func (m *Model) Close() { _ = m.web.Close() }

// ServeHTTP implements http.Handler.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, "this model has /chat/completions only", http.StatusNotFound)
		return
	}
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	call, err := m.wanted(body.Bytes())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.write(w, call, has(body.Bytes(), "stream", "true"))
}

// wanted is the call to answer with; nil is a sentence. Requests are searched rather than
// decoded, because decoding one costs more than a turn.
func (m *Model) wanted(body []byte) (*shellCall, error) {
	if last(body, "tool") > last(body, "user") || !bytes.Contains(body, []byte(`"tools"`)) {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.call == nil {
		var err error
		if m.call, err = findShell(body); err != nil {
			return nil, err
		}
	}
	return m.call, nil
}

// last is where the last message of this role begins.
func last(body []byte, role string) int {
	return max(bytes.LastIndex(body, []byte(`"role":"`+role+`"`)), bytes.LastIndex(body, []byte(`"role": "`+role+`"`)))
}

func has(body []byte, field, value string) bool {
	return bytes.Contains(body, []byte(`"`+field+`":`+value)) || bytes.Contains(body, []byte(`"`+field+`": `+value))
}

// findShell finds the tool that runs commands: the first one with a parameter for one.
func findShell(body []byte) (*shellCall, error) {
	var asked struct {
		Tools []struct {
			Function struct {
				Name       string `json:"name"`
				Parameters struct {
					Properties map[string]struct {
						Type string   `json:"type"`
						Enum []string `json:"enum"`
					} `json:"properties"`
					Required []string `json:"required"`
				} `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	for _, t := range asked.Tools {
		f := t.Function
		_, takes := f.Parameters.Properties["command"]
		if !takes || !strings.Contains(f.Name, "bash") && !strings.Contains(f.Name, "shell") {
			continue
		}
		args := map[string]any{}
		for _, name := range f.Parameters.Required {
			switch p := f.Parameters.Properties[name]; {
			case len(p.Enum) > 0:
				args[name] = p.Enum[0]
			case p.Type == "string":
				args[name] = "print a greeting"
			case p.Type == "boolean":
				args[name] = false
			default:
				args[name] = 10
			}
		}
		args["command"] = Command
		text, _ := json.Marshal(args)
		return &shellCall{f.Name, string(text)}, nil
	}
	return nil, fmt.Errorf("none of the %d tools runs a shell command", len(asked.Tools))
}

// write answers with a call or a sentence, streamed or whole.
func (m *Model) write(w http.ResponseWriter, call *shellCall, stream bool) {
	n := m.calls.Add(1)
	part, reason := map[string]any{"role": "assistant", "content": "The shell says hi."}, "stop"
	if call != nil {
		reason = "tool_calls"
		part = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": map[string]string{"name": call.name, "arguments": call.args}}}}
	}
	usage := map[string]int{"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
	answer := func(object string, choices []any) map[string]any {
		return map[string]any{"id": fmt.Sprint("answer-", n), "object": object, "created": 1, "model": "instant", "choices": choices, "usage": usage}
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer("chat.completion", []any{map[string]any{"index": 0, "message": part, "finish_reason": reason}}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	var out bytes.Buffer
	for _, choices := range [][]any{
		{map[string]any{"index": 0, "delta": part, "finish_reason": nil}},
		{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}},
		{},
	} {
		text, _ := json.Marshal(answer("chat.completion.chunk", choices))
		fmt.Fprintf(&out, "data: %s\n\n", text)
	}
	out.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(out.Bytes())
}
