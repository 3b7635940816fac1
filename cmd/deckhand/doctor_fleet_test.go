package main

import (
	"os"
	"strings"
	"testing"
)

// The doctor of another machine verifies a database that a server uses, and repairs nothing until that server has stopped.
func TestDoctorBesideServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	b := f.boxes[0]
	b.demo("scripted/demo")
	id := b.create("$ echo done here")
	b.said(id, 0, "done here")
	f.home(id)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	examined := func(args ...string) (string, error) {
		cmd := process(append([]string{"doctor", "--data-dir", dir, "--database-url", f.database}, args...)...)
		cmd.Env = append(cmd.Env, "DECKHAND_MASTER_KEY="+f.master)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	whole := append([]string{"--addr", "127.0.0.1:0"}, plainSandbox(t, nil)...)

	out, err := examined(whole...)
	if holds(t, out, "conversations    1 with", "agrees with the conversations"); err != nil || strings.Contains(out, "the workspace of conversation") {
		t.Errorf("beside a server on another machine: %v\n%s", err, out)
	}
	if out, err = examined(append(whole, "--repair")...); err == nil {
		t.Errorf("a repair beside a server:\n%s", out)
	}
	holds(t, out, "another server uses this database", "stop all servers that use this database")
	if out, err = examined("--repair", id); err == nil || !strings.Contains(out, "another server uses this database") {
		t.Errorf("a repair of one conversation beside a server: %v\n%s", err, out)
	}
	f.end(0)
	if out, err = examined(append(whole, "--repair")...); err != nil {
		t.Errorf("a repair without servers: %v\n%s", err, out)
	}
}
