package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// goTest runs go test, and beside it a second go test for the packages that are
// tested without the race detector. That tests fail is no error here; that go
// test says nothing of a package is.
func goTest(ctx context.Context, r *report, env []string, measured bool, flags, packages []string) error {
	var rest, second []string
	for _, p := range packages {
		if slices.Contains(flags, "-race") && os.Getenv("DECKHAND_SOAK") == "" && slices.Contains(plain, short(p)) {
			second = append(second, p)
		} else {
			rest = append(rest, p)
		}
	}
	var errs [2]error
	var lanes sync.WaitGroup
	if len(rest) > 0 {
		lanes.Go(func() { errs[0] = lane(ctx, r, env, measured, flags, rest) })
	}
	if len(second) > 0 {
		lanes.Go(func() { errs[1] = lane(ctx, r, plainEnv(env), measured, withoutRace(flags), second) })
	}
	lanes.Wait()
	return errors.Join(errs[:]...)
}

// lane runs go test once and feeds what it says to the report.
func lane(ctx context.Context, r *report, env []string, measured bool, flags, packages []string) error {
	args := append([]string{"test", "-json"}, flags...)
	// Results of a measured run cannot be reused, and must not be.
	if self, err := os.Executable(); measured && err == nil {
		args = append(args, "-exec", self+" measure")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := r.read(out); err != nil {
		return err
	}
	err = cmd.Wait()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return err
	}
	if err != nil && !r.anyFailed(packages) {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

func withoutRace(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-race" })
}

// plainEnv makes go test compile what make build has compiled already.
func plainEnv(env []string) []string {
	env = slices.Clone(env)
	for i, v := range env {
		if list, ok := strings.CutPrefix(v, "GOFLAGS="); ok {
			kept := slices.DeleteFunc(strings.Fields(list), func(f string) bool { return strings.HasSuffix(f, "=-race=false") })
			env[i] = "GOFLAGS=" + strings.Join(kept, " ")
		}
	}
	return append(env, "CGO_ENABLED=0")
}
