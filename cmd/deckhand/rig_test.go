package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/config"
	"deckhand/internal/soak"
)

const (
	// builtProgram is the program that tests start as a process. make test names the
	// one that it built, as users get it: it starts in a fifth of the time.
	builtProgram = "DECKHAND_TEST_PROGRAM"
	// asProgram makes the test binary be the program where none is named.
	asProgram = "DECKHAND_TEST_AS_PROGRAM"
)

// programFile is what to run as the program, with asProgram in its environment.
func programFile() string { return cmp.Or(os.Getenv(builtProgram), os.Args[0]) }

// process is the program with these arguments, as a process of its own.
func process(args ...string) *exec.Cmd {
	cmd := exec.Command(programFile(), args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	legacyBuild = os.Getenv("DECKHAND_LEGACY_UI")
	os.Unsetenv("DECKHAND_LEGACY_UI")
	for _, p := range config.ProviderKeys {
		os.Unsetenv(p.Variable) // tests must not use the key of a person
	}
	os.Setenv("DECKHAND_TITLES", "task") // the models of most tests answer in order
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"))
}

// box is a server under test with its data.
type box struct {
	t      *testing.T
	dir    string
	base   string
	link   string
	key    string
	logs   *syncBuffer
	client *client.Client
	stop   func() int
}

// syncBuffer collects output of goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var (
	baseLine = regexp.MustCompile(`is at (https?://\S+)`)
	linkLine = regexp.MustCompile(`log in:\s+(\S+)`)
)

// plainSandbox chooses the driver that costs nothing as long as no command is
// run, for tests that are about something else.
func plainSandbox(t *testing.T, args []string) []string {
	if slices.Contains(args, "--sandbox") {
		return args
	}
	return append(withSandbox(t, "host"), args...)
}

// serve runs the server in this process, on a free port and the given data dir ("" is a new one).
func serve(t *testing.T, dir string, args ...string) *box {
	t.Helper()
	soak.NotShort(t, "serves with the whole program")
	if dir == "" {
		dir = t.TempDir()
	}
	b := &box{t: t, dir: dir, logs: &syncBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json", "--rate-limit", "0"}, plainSandbox(t, args)...)
		code <- run(ctx, args, in, b.logs)
		in.Close()
	}()
	b.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() {
		if t.Failed() && b.client != nil {
			(&person{box: b}).dropAll() // it did not come to that itself
		}
		b.stop()
		b.leavesNothing()
	})
	b.readGreeting(out)
	go io.Copy(io.Discard, out)
	return b
}

// leavesNothing finds the test whose sandboxes go on after it: they are made to outlive their
// server. One that was just ended may not be buried yet.
func (b *box) leavesNothing() {
	b.t.Helper()
	started, _ := filepath.Glob(filepath.Join(b.dir, "boxes", "*", "process.json")) // the pattern is good
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, name := range started {
		var runner struct {
			PID     int
			Started string
		}
		text, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(text, &runner) != nil || runner.PID <= 0 || runner.Started == "" {
			continue
		}
		for startTime(runner.PID) == runner.Started { // its PID may be another process's by now
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
				b.t.Errorf("the sandbox of %s outlives the test", filepath.Base(filepath.Dir(name)))
			}
			break
		}
	}
}

// startTime is when a process was started, as the kernel counts it; "" if it has ended.
func startTime(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// spawn runs the server as a process of its own, so that it can be killed.
func spawn(t *testing.T, dir string, args ...string) (*box, *exec.Cmd) {
	t.Helper()
	soak.NotShort(t, "starts a server as a process")
	b := &box{t: t, dir: dir, logs: &syncBuffer{}}
	cmd := process(append([]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0", "--rate-limit", "0"}, plainSandbox(t, args)...)...)
	cmd.Stderr = b.logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that is killed leaves a spare sandbox behind
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
	})
	b.readGreeting(out)
	return b, cmd
}

// readGreeting reads where the server is; it is listening by then.
func (b *box) readGreeting(out io.Reader) {
	b.t.Helper()
	r := bufio.NewScanner(out)
	var seen strings.Builder
	for r.Scan() {
		seen.WriteString(r.Text() + "\n")
		if m := baseLine.FindStringSubmatch(r.Text()); m != nil {
			b.base = m[1]
		}
		if m := linkLine.FindStringSubmatch(r.Text()); m != nil {
			b.link = m[1]
			break
		}
	}
	if b.base == "" {
		b.t.Fatalf("the server did not start: %s%s", seen.String(), b.logs)
	}
	key, err := os.ReadFile(filepath.Join(b.dir, "admin.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.key = strings.TrimSpace(string(key))
	b.client = client.New(b.base, b.key)
}

// demo stores settings with the built-in model.
func (b *box) demo(model string) {
	b.t.Helper()
	if _, err := b.client.StoreSettings(b.t.Context(), api.SettingsInput{LLMModel: api.Some(model)}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) create(text string) string {
	b.t.Helper()
	in := api.CreateConversation{}
	if text != "" {
		in.InitialUserMsg = api.Some(text)
	}
	made, err := b.client.Create(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return made.ConversationID
}

// follow reads the stream until ok says it saw enough, and returns all stored events on the way.
func (b *box) follow(id string, after int64, ok func(client.LegacyItem) bool) []client.LegacyItem {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	var seen []client.LegacyItem
	for it, err := range b.client.FollowLegacy(ctx, id, after) {
		if err != nil {
			b.t.Fatalf("%v; seen so far: %s", err, describe(seen))
		}
		if it.ID > 0 {
			seen = append(seen, it)
		}
		if ok(it) {
			return seen
		}
	}
	b.t.Fatalf("the stream ended; seen: %s", describe(seen))
	return nil
}

func describe(items []client.LegacyItem) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%d %s\n", it.ID, it.Raw)
	}
	return b.String()
}

// agentIs waits for a state of the agent.
func agentIs(state string) func(client.LegacyItem) bool {
	return func(it client.LegacyItem) bool {
		return it.Event != nil && it.Event.Observation == "agent_state_changed" && strings.Contains(string(it.Event.Extras), `"`+state+`"`)
	}
}

// raw makes a request as it stands.
func (b *box) raw(method, path, body string, header ...string) (int, string, http.Header) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Session-API-Key", b.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// command runs a command of the program and returns what it printed.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}
