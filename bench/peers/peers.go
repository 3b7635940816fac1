// Package peers runs the same scenario against several servers. A peer is a folder with an
// executable named start, which runs the server in the foreground and prints one line when it
// begins to start: an adapter's name, the base URL and, if needed, a key or @ and a file with
// it. README.md of bench explains the rest.
package peers

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/load"
)

// Peer is a server that can be started.
type Peer struct {
	Name  string
	Start string // the executable
}

// Find lists the peers of a folder, and says of each other subfolder why it is none.
func Find(dir string) (found []Peer, missing []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		start, err := filepath.Abs(filepath.Join(dir, e.Name(), "start"))
		if err != nil {
			return nil, nil, err
		}
		info, err := os.Stat(start)
		switch {
		case err != nil:
			missing = append(missing, e.Name()+" has no file named start")
		case info.Mode()&0o111 == 0:
			missing = append(missing, e.Name()+"/start is not executable")
		default:
			found = append(found, Peer{e.Name(), start})
		}
	}
	return found, missing, nil
}

// API is what the scenario needs of a server.
type API interface {
	// Prepare is called once, before anything is measured.
	Prepare(ctx context.Context, modelURL string) error
	// Create makes a conversation without a turn.
	Create(ctx context.Context) error
	// Begin makes a conversation and returns when its first turn has ended.
	Begin(ctx context.Context) (Conversation, error)
}

// Conversation is one that had its first turn.
type Conversation interface {
	// Turn sends a message and returns when the agent has answered. It fails if the command
	// was not run.
	Turn(ctx context.Context) error
	// Close ends its connections and deletes the conversation if the server can do so.
	Close()
}

// adapters make the API of a kind of server at a base URL.
var adapters = map[string]func(base, key string) API{
	"deckhand":  newDeckhand,
	"openhands": newOpenHands,
	"opencode":  newOpenCode,
}

// Running is a peer that was started and answers.
type Running struct {
	API
	Took time.Duration // from its start to the first answer

	cmd   *exec.Cmd
	ended chan struct{} // closed when err is set
	err   error
}

// startTime is how long a peer may take until it answers.
const startTime = 2 * time.Minute

// Run starts the peer with its data in dir. BENCH_DIR, BENCH_ADDR and BENCH_MODEL_URL tell the
// executable where to keep data, where to listen and where the model is.
func (p Peer) Run(ctx context.Context, dir, modelURL string) (*Running, error) {
	addr, err := load.FreeAddr()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "peer.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.Start)
	cmd.Dir = filepath.Dir(p.Start)
	cmd.Env = append(load.Environment(), "BENCH_DIR="+dir, "BENCH_ADDR="+addr, "BENCH_MODEL_URL="+modelURL)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &Running{cmd: cmd, ended: make(chan struct{})}
	lines := bufio.NewReader(out)
	said := make(chan string, 1)
	go func() {
		line, _ := lines.ReadString('\n')
		said <- line
		_, _ = lines.WriteTo(log) // what it prints later must not block it
		r.err = cmd.Wait()
		close(r.ended)
	}()
	if err := r.await(ctx, begin, said); err != nil {
		r.Stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%.1000s", p.Name, err, text)
	}
	return r, nil
}

// await reads the line of the peer and waits until it answers.
func (r *Running) await(ctx context.Context, begin time.Time, said chan string) error {
	ctx, cancel := context.WithDeadline(ctx, begin.Add(startTime))
	defer cancel()
	var line string
	select {
	case line = <-said:
	case <-ctx.Done():
		return errors.New("start printed no line")
	}
	words := strings.Fields(line)
	if len(words) < 2 || len(words) > 3 || adapters[words[0]] == nil {
		return fmt.Errorf("start printed %q; wanted: ADAPTER URL [KEY], where ADAPTER is deckhand, openhands or opencode", strings.TrimSpace(line))
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := http.Get(words[1] + "/health")
		if err == nil {
			res.Body.Close()
			break // any answer will do: not all have this path
		}
		select {
		case <-r.ended:
			return fmt.Errorf("it ended: %w", cmp.Or(r.err, errors.New("without an error")))
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-tick.C:
		}
	}
	r.Took = time.Since(begin)
	key := ""
	if len(words) == 3 {
		key = words[2]
	}
	if file, ok := strings.CutPrefix(key, "@"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		key = strings.TrimSpace(string(text))
	}
	r.API = adapters[words[0]](words[1], key)
	return nil
}

// Stop ends the peer and waits for it. It may be called twice.
func (r *Running) Stop() {
	select {
	case <-r.ended:
		return
	default:
	}
	group := -r.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-r.ended
	}
}
