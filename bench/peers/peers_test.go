package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/load"
	"deckhand/internal/soak"
)

// install makes a folder with a peer.
func install(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "start"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindSaysWhatIsNotInstalled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install(t, dir, "one", "exit 1\n")
	if err := os.Mkdir(filepath.Join(dir, "two"), 0o755); err != nil {
		t.Fatal(err)
	}
	install(t, dir, "three", "exit 1\n")
	if err := os.Chmod(filepath.Join(dir, "three", "start"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, missing, err := Find(dir)
	if err != nil || len(found) != 1 || found[0].Name != "one" {
		t.Fatalf("found %v, %v; wanted the one that is installed", found, err)
	}
	if said := strings.Join(missing, "; "); said != "three/start is not executable; two has no file named start" {
		t.Errorf("missing: %s", said)
	}
}

// TestPeersThatDoNotStart must be told what is wrong with their start.
func TestPeersThatDoNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install(t, dir, "mute", "echo broken >&2; exit 3\n")
	install(t, dir, "unknown", "echo unknown http://127.0.0.1:1\n")
	install(t, dir, "gone", "echo opencode http://127.0.0.1:1\n")
	for name, want := range map[string]string{"mute": "broken", "unknown": "where ADAPTER is deckhand, openhands or opencode", "gone": "it ended"} {
		_, err := Peer{name, filepath.Join(dir, name, "start")}.Run(t.Context(), t.TempDir(), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; wanted: %s", name, err, want)
		}
	}
}

// fakeOpenCode is the part of opencode's wire that the adapter uses. It asks the model, as
// a real one does, and "runs" the command it is told to.
type fakeOpenCode struct {
	model string
	mu    sync.Mutex
	ran   map[string]int
	lazy  bool // does not run the command
}

func (f *fakeOpenCode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == "POST" && len(path) == 1 && path[0] == "session":
		id := fmt.Sprint("ses_", len(f.ran))
		f.ran[id] = 0
		fmt.Fprintf(w, `{"id":%q}`, id)
	case r.Method == "POST" && len(path) == 3:
		var said struct {
			Model struct{ ProviderID, ModelID string }
			Parts []struct{ Type, Text string }
		}
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil || said.Model.ProviderID != "bench" || said.Model.ModelID != "instant" || len(said.Parts) != 1 {
			http.Error(w, fmt.Sprint("not a message: ", said, err), http.StatusBadRequest)
			return
		}
		if err := f.turn(path[1]); err != nil {
			fmt.Fprintf(w, `{"info":{"error":%q},"parts":[]}`, err)
			return
		}
		fmt.Fprint(w, `{"info":{"role":"assistant"},"parts":[{"type":"text","text":"The shell says hi."}]}`)
	case r.Method == "GET" && len(path) == 3:
		status := "completed"
		if f.ran[path[1]] == 0 {
			status = "error"
		}
		fmt.Fprintf(w, `[{"info":{},"parts":[{"type":"tool","state":{"status":%q}}]}]`, status)
	case r.Method == "DELETE":
		delete(f.ran, path[1])
		fmt.Fprint(w, "true")
	default:
		http.NotFound(w, r)
	}
}

// turn asks the model twice.
func (f *fakeOpenCode) turn(id string) error {
	const tools = `"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command","description"]}}}]`
	for _, messages := range []string{`{"role":"user","content":"Say hi."}`, `{"role":"user","content":"Say hi."},{"role":"tool","content":"hi"}`} {
		res, err := http.Post(f.model+"/chat/completions", "application/json", strings.NewReader(`{"stream":false,`+tools+`,"messages":[`+messages+`]}`))
		if err != nil {
			return err
		}
		var answer struct {
			Choices []struct {
				Message struct {
					Content   string
					ToolCalls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		err = json.NewDecoder(res.Body).Decode(&answer)
		res.Body.Close()
		if err != nil {
			return err
		}
		for _, c := range answer.Choices[0].Message.ToolCalls {
			if !f.lazy && c.Function.Name == "bash" && c.Function.Arguments == `{"command":"echo hi","description":"print a greeting"}` {
				f.ran[id]++
			}
		}
	}
	return nil
}

func TestOpenCodeWire(t *testing.T) {
	t.Parallel()
	model, err := load.StartModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	fake := &fakeOpenCode{model: model.URL, ran: map[string]int{}}
	web := httptest.NewServer(fake)
	t.Cleanup(web.Close)
	figures, err := measureTurns(t.Context(), newOpenCode(web.URL, ""), Size{Turns: 4, AtOnce: 3, During: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) != 6 || figures[3].Name != "warm turns, 3 at once" || figures[3].Value <= 0 {
		t.Errorf("figures: %v", figures)
	}
	if len(fake.ran) != 0 {
		t.Errorf("sessions %v are left, wanted none", fake.ran)
	}
	fake.lazy = true
	if _, err := newOpenCode(web.URL, "").Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "ran no command") {
		t.Errorf("a turn without its command: %v; wanted a failure", err)
	}
}

// TestDeckhandAsPeer measures the real program through both of its dialects.
func TestDeckhandAsPeer(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts a server and sandboxes")
	program, err := filepath.Abs("../../bin/deckhand")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("SKIPPED: there is no bin/deckhand; make build makes it")
	}
	dir := t.TempDir()
	for _, kind := range []string{"deckhand", "openhands"} {
		install(t, dir, kind, fmt.Sprintf("echo \"%s http://$BENCH_ADDR @$BENCH_DIR/data/admin.key\"\nexec %s serve --addr \"$BENCH_ADDR\" --data-dir \"$BENCH_DIR/data\" --sandbox local\n", kind, program))
	}
	found, _, err := Find(dir)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, p := range found {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			model, err := load.StartModel()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(model.Close)
			data := sandboxable(t)
			r, err := p.Run(t.Context(), data, model.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Stop)
			if err := r.Prepare(t.Context(), model.URL); err != nil {
				t.Fatal(err)
			}
			if err := r.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			figures, err := measureTurns(context.WithoutCancel(t.Context()), r, Size{Turns: 4, AtOnce: 2, During: 100 * time.Millisecond})
			if err != nil || len(figures) == 0 {
				t.Fatal(figures, err)
			}
		})
	}
}

// sandboxable is a temporary folder that the users of sandboxes can get through.
func sandboxable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
