package machine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limitEnv makes the test program a process that does not stop by itself, with this limit. With endedEnv it does.
const limitEnv, endedEnv = "DECKHAND_TEST_LIMIT", "DECKHAND_TEST_ENDED"

// A process that does not stop reports what it waits for and ends. Another signal ends it at once.
func TestEndWithin(t *testing.T) {
	t.Parallel()
	if limit := os.Getenv(limitEnv); limit != "" {
		neverStop(limit)
	}
	for name, c := range map[string]struct {
		limit  string
		again  bool // whether another signal is sent
		ended  string
		status string
		report bool
	}{
		"limit":  {limit: "10ms", status: "exit status 1", report: true},
		"signal": {limit: "1h", again: true, status: "signal: terminated"},
		"ended":  {limit: "1h", again: true, ended: "yes", status: "exit status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestEndWithin$")
			cmd.Env = append(os.Environ(), limitEnv+"="+c.limit, endedEnv+"="+c.ended)
			if _, err := cmd.StdinPipe(); err != nil { // it ends with this process, however that ends
				t.Fatal(err)
			}
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan() // it is ready
			_ = cmd.Process.Signal(syscall.SIGTERM)
			lines.Scan() // it is stopping
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			tick := time.NewTicker(10 * time.Millisecond) // it may not expect another signal yet
			defer tick.Stop()
			for err = nil; err == nil; {
				select {
				case err = <-ended:
				case <-tick.C:
					if c.again {
						_ = cmd.Process.Signal(syscall.SIGTERM)
					}
				}
			}
			if err.Error() != c.status {
				t.Errorf("%v, wanted %s: %s", err, c.status, said.String())
			}
			if got := strings.Contains(said.String(), "did not stop in time") && strings.Contains(said.String(), "neverStop"); got != c.report {
				t.Errorf("it said: %s", said.String())
			}
		})
	}
}

func neverStop(limit string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(8)
	}()
	ctx, _ := UntilSignal()
	d, err := time.ParseDuration(limit)
	if err != nil {
		os.Exit(9)
	}
	ended := EndWithin(ctx, d)
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("stopping")
	if os.Getenv(endedEnv) != "" {
		ended()
		os.Exit(7)
	}
	select {}
}

// A process that is not the caller's own is left alone.
func TestEndWithinElsewhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := EndWithin(ctx, 0)
	ended()
	ended()
}
