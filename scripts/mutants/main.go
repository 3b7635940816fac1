// Command mutants breaks the core in ten places, one after the other, and runs
// the tests of the package. Each break must make a test fail; the first that
// notices is named. The tree is not touched: go test sees the change through an
// overlay.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mutant is one break: the text old, which occurs once in the file, becomes new. The tests of
// the file's package, or those in tests, must fail.
type mutant struct {
	what, file, old, new string
	tests                string
}

var mutants = []mutant{
	{"a model call beyond the money limit is paid", "internal/session/decide.go", "a.Reserved > limit-s.Committed()", "a.Reserved > limit", ""},
	{"a stopped conversation is stopped again", "internal/session/decide.go", "if s.Stopped || s.Failed {\n\t\treturn nil, nil\n\t}", "if s.Failed {\n\t\treturn nil, nil\n\t}", ""},
	{"an append after a later event is accepted", "internal/store/sqlite/log.go", "if !found || last != b.After {", "if !found && last != b.After {", ""},
	{"a write over newer settings is accepted", "internal/store/sqlite/settings.go", "if err == nil && changed == 0 {", "if err == nil && changed < 0 {", ""},
	{"an expired key is accepted", "internal/access/gate.go", "if id.ExpiresAt != nil && past(id.ExpiresAt, g.now()) {", "if false && past(id.ExpiresAt, g.now()) {", ""},
	{"a risky call runs without approval", "internal/agent/approve.go", "if !p.Confirm || spec.Harmless ||", "if true || spec.Harmless ||", ""},
	{"a switched-off network lets HTTPS out", "internal/sandbox/egress/policy.go", "case r.mode == Off:", "case r.mode == Off && port != 443:", ""},
	{"a key is used again for another request", "internal/httpapi/rest/once.go", "case err == nil && stored.Request != request:", "case err == nil && stored.Request != request && request == \"\":", "internal/httpapi"},
	{"a sealed value opens for another user", "internal/secret/keyring.go", "plaintext, err := key.aead.Open(nil, nil, sealed[headerSize:], valueContext(user, field))", "plaintext, err := key.aead.Open(nil, nil, sealed[headerSize:], valueContext(field, user))", ""},
	{"another user's conversation is shown", "internal/conversation/service.go", "if r.Owner != user || r.Deleted {", "if r.Deleted {", "internal/httpapi"},
}

func main() {
	missed := 0
	for i, m := range mutants {
		start := time.Now()
		noticed, err := try(context.Background(), m)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m.file, err)
			os.Exit(2)
		}
		if noticed == "" {
			noticed, missed = "NOT NOTICED", missed+1
		}
		fmt.Printf("%2d  %-48s %s (%s)\n", i+1, m.what, noticed, time.Since(start).Round(time.Second))
	}
	fmt.Printf("%d of %d noticed\n", len(mutants)-missed, len(mutants))
	if missed > 0 {
		os.Exit(1)
	}
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// try breaks one place and returns the test that noticed. A break that does not
// compile, or that only a time limit ends, is an error: it shows nothing.
func try(ctx context.Context, m mutant) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return "", fmt.Errorf("%q occurs %d times", m.old, n)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	whole, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{whole: broken}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(broken, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=10m", "-failfast", "./"+cmp.Or(m.tests, filepath.Dir(m.file))).CombinedOutput()
	if err == nil {
		return "", nil
	}
	if found := failure.FindSubmatch(out); found != nil && !strings.Contains(string(out), "panic: test timed out") {
		return string(found[1]), nil
	}
	return "", fmt.Errorf("no test failed, and yet: %w\n%s", err, out[max(0, len(out)-2000):])
}
