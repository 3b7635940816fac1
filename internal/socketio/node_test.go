package socketio

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"deckhand/internal/npmtest"
)

// officialClients is a folder with the official client in several versions, each under its own name.
func officialClients(t *testing.T) string {
	t.Helper()
	var packages []string
	for _, version := range []string{"4.0.2", "4.4.1", "4.6.2", "4.7.5", "4.8.4"} {
		packages = append(packages, "client-"+version[:3]+"@npm:socket.io-client@"+version)
	}
	return filepath.Dir(npmtest.Install(t, "socket.io-clients-4.8.4", packages...))
}

// host is the server that the official clients are tried with.
type host struct {
	mu   sync.Mutex
	kept map[string]chan struct{} // by what a client asked to keep
	logs map[string]int           // how long each log is, by name
}

func (h *host) keep(id string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept[id] == nil {
		h.kept[id] = make(chan struct{})
	}
	return h.kept[id]
}

// meet answers whatever a client asks for.
func (h *host) meet(_ context.Context, s *Socket) (Serve, error) {
	notes := []json.RawMessage{}
	return Serve{Event: func(ctx context.Context, e Event) {
		args := make([]any, len(e.Args))
		for i, a := range e.Args {
			if args[i] = a; len(e.Attachments) > 0 {
				if b, ok := e.Binary(i); ok {
					args[i] = b
				}
			}
		}
		switch e.Name {
		case "echo":
			_ = e.Ack(ctx, args...)
		case "say":
			_ = s.Emit(ctx, "said", args...)
		case "who":
			query := map[string]string{}
			for name, values := range s.Request().URL.Query() {
				query[name] = values[0]
			}
			_ = e.Ack(ctx, map[string]any{
				"id": s.ID(), "namespace": s.Namespace(), "query": query, "auth": s.Auth(), "connection": s.conn.engine.ID(),
			})
		case "call me":
			answer, err := s.Call(ctx, "question", args...)
			if err == nil {
				_ = s.Emit(ctx, "answered", answer[0], answer[1])
			}
		case "count":
			n, _ := strconv.Atoi(string(e.Args[0]))
			for i := range n {
				_ = s.Emit(ctx, "number", i)
			}
		case "note":
			notes = append(notes, e.Args[0])
		case "notes":
			_ = e.Ack(ctx, notes)
		case "throw me out":
			s.Disconnect("as you wish")
		case "keep":
			close(h.keep(string(e.Args[0])))
		case "kept":
			select {
			case <-h.keep(string(e.Args[0])):
				_ = e.Ack(ctx, args...)
			case <-ctx.Done():
			}
		}
	}}, nil
}

// recover serves a log of numbers that begins with ten, from where the client
// has it.
func (h *host) recover(_ context.Context, s *Socket) (Serve, error) {
	name, from := s.Request().URL.Query().Get("log"), 0
	if offset, ok := s.Lost(); ok {
		last, err := strconv.Atoi(offset)
		if err != nil {
			return Serve{}, &Refusal{Message: "no offset"}
		}
		from = last + 1
		s.Recover()
	}
	h.mu.Lock()
	if h.logs[name] == 0 {
		h.logs[name] = 10
	}
	to := h.logs[name]
	h.mu.Unlock()
	return Serve{
		Run: func(ctx context.Context) {
			for i := from; i < to; i++ {
				_ = s.EmitAt(ctx, strconv.Itoa(i), "event", i)
			}
		},
		Event: func(ctx context.Context, e Event) {
			if e.Name == "sync" {
				_ = e.Ack(ctx)
				return
			}
			n, _ := strconv.Atoi(string(e.Args[0]))
			h.mu.Lock()
			h.logs[name] += n
			h.mu.Unlock()
			s.Cut("as you wish")
		},
	}, nil
}

// TestOfficialClients drives the official JavaScript client, in several versions
// and over all transports.
func TestOfficialClients(t *testing.T) {
	folder := officialClients(t)
	h := &host{kept: map[string]chan struct{}{}, logs: map[string]int{}}
	_, address := listen(t, Options{}, map[string]Handler{
		"/": h.meet, "/other": h.meet, "/recover": h.recover,
		"/refused": func(context.Context, *Socket) (Serve, error) {
			return Serve{}, &Refusal{"No conversation_id in query params", map[string]string{"msg_id": "X"}}
		},
	})
	t.Run("versions", func(t *testing.T) { // returns when all have ended, before the server does
		for version, round := range map[string]string{"4.0": "", "4.4": "light", "4.6": "light", "4.7": "light", "4.8": ""} {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				drive(t, folder, version, address, round)
			})
		}
	})
}

// drive runs all cases with one version of the client and tells how each went.
func drive(t *testing.T, folder, version, address, round string) {
	script := filepath.Join("testdata", "node", "clients.js")
	cmd := exec.CommandContext(t.Context(), "node", script, folder, version, address, round)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	whole, last := false, "none"
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var c struct{ Name, Error string }
		if whole = lines.Text() == `"end"`; whole {
			break
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Errorf("the script says %q", lines.Text())
			continue
		}
		last = c.Name
		t.Run(c.Name, func(t *testing.T) {
			if c.Error != "" {
				t.Error(c.Error)
			}
		})
	}
	if err := cmd.Wait(); err != nil || !whole {
		t.Errorf("the script ended after the case %q: %v", last, err)
	}
}
