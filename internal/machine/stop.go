package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// laterSignals is the context key for the signals after the first one.
type laterSignals struct{}

// sameSignal is how long signals count as the first one. A process whose parent dies can get several at once: one for each thread
// of the parent.
const sameSignal = time.Second

// UntilSignal returns a context that ends with the first SIGINT or SIGTERM. Later signals are ignored, except by EndWithin.
func UntilSignal() (ctx context.Context, stop func()) {
	signals, later := make(chan os.Signal, 1), make(chan os.Signal)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), laterSignals{}, later))
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		var first time.Time
		for s := range signals {
			switch {
			case first.IsZero():
				first = time.Now()
				cancel()
			case time.Since(first) > sameSignal:
				select {
				case later <- s:
				default:
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// Stopped sets the error of a server to nil if it only says that ctx ended: a server that is stopped during its start
// ends like one that is stopped later.
func Stopped(ctx context.Context, err *error) {
	if ctx.Err() != nil && errors.Is(*err, context.Canceled) {
		*err = nil
	}
}

// EndWithin ends the process if it still runs a time after the end of ctx, and at once if it then gets another signal. It does
// nothing unless ctx is from UntilSignal: otherwise, the process is not the caller's own. Call ended when the process is about to
// end by itself.
func EndWithin(ctx context.Context, limit time.Duration) (ended func()) {
	later, own := ctx.Value(laterSignals{}).(chan os.Signal)
	if !own {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		select {
		case <-done:
		case s := <-later:
			signal.Reset(s)
			if s, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), s)
			}
		case <-time.After(limit):
			reportWaits()
			os.Exit(1)
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

const (
	// maxStacks is how many bytes of goroutine stacks are reported.
	maxStacks = 1 << 20
	// reportTime is how long the report may take: standard error may be a pipe that no program reads.
	reportTime = 2 * time.Second
)

// reportWaits prints what all goroutines wait for.
func reportWaits() {
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintf(os.Stderr, "deckhand: the process did not stop in time and ends now; all acknowledged data is stored; what it waits for:\n%s\n", stacks)
	}()
	select {
	case <-printed:
	case <-time.After(reportTime):
	}
}
