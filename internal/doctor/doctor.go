// Package doctor checks whether a server can run on this machine, and whether the
// log of a conversation is whole. It says what to do about what is wrong.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"deckhand/api"
	"deckhand/internal/control"
	"deckhand/internal/sandbox/drivers"
)

// DataDir checks that a folder can be the data directory.
func DataDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the server makes it
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a folder; choose another --data-dir")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read it; run: chmod 700 %s", dir)
	}
	probe := filepath.Join(dir, ".doctor")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil && int64(fs.Bavail)*int64(fs.Bsize) < 100<<20 {
		err = errors.New("less than 100 MiB of disk space left")
	}
	return errors.Join(err, os.Remove(probe))
}

// Address checks that a server could listen there, or that the one of the data directory does.
func Address(addr, dataDir string) error {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && control.Running(dataDir) {
		return nil // it is ours
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.New("in use: a server may be running already; otherwise choose another --addr")
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// Report writes what was found, a line for each check.
type Report struct {
	Out    io.Writer
	failed int
}

// Check writes one finding; an error is a failure.
func (r *Report) Check(what, detail string, err error) {
	mark := "ok  "
	if err != nil {
		mark, detail = "FAIL", err.Error()
		r.failed++
	}
	fmt.Fprintf(r.Out, "%s  %-16s %s\n", mark, what, detail)
}

// Warn tells of something that works less well than it could.
func (r *Report) Warn(what, detail string) {
	fmt.Fprintf(r.Out, "warn  %-16s %s\n", what, detail)
}

// Result ends the report; it is an error if a check failed.
func (r *Report) Result() error {
	if r.failed > 0 {
		return fmt.Errorf("%d of the checks failed", r.failed)
	}
	fmt.Fprintln(r.Out, "All checks passed.")
	return nil
}

// Model writes what came out of trying a model. An unknown result is a warning,
// and so is what agents can do without.
func (r *Report) Model(found api.ModelReport) {
	var err error
	if !found.OK {
		err = fmt.Errorf("agents cannot use %s", found.Model)
	}
	r.Check("model", found.Model, err)
	for _, k := range found.Checks {
		switch {
		case k.OK != nil && *k.OK:
			r.Check("  "+k.Name, k.Message, nil)
		default:
			r.Warn("  "+k.Name, k.Message)
		}
	}
	for _, n := range found.Notes {
		r.Warn("  key", n)
	}
}

// Sandbox asks the sandbox driver what it thinks of this machine. The config is
// made for a folder of its own.
func (r *Report) Sandbox(ctx context.Context, config func(dir string) drivers.Config) {
	dir, err := os.MkdirTemp("", "deckhand-doctor-")
	if err != nil {
		r.Check("sandbox", "", err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // a sandbox's own user must get through
		r.Check("sandbox", "", err)
		return
	}
	d, err := drivers.Open(ctx, config(dir))
	if err != nil {
		r.Check("sandbox", "", err)
		return
	}
	defer d.Close()
	r.Check("sandbox", d.Name, nil)
	for _, f := range drivers.Findings(ctx, d.Driver) {
		switch {
		case f.Fatal:
			r.Check("  "+d.Name, "", fmt.Errorf("%s: %s. %s", f.What, strings.TrimRight(f.Found, "."), f.Fix))
		case !f.OK:
			r.Warn("  "+d.Name, fmt.Sprintf("%s: %s. %s", f.What, strings.TrimRight(f.Found, "."), f.Fix))
		default:
			r.Check("  "+d.Name, f.What+": "+f.Found, nil)
		}
	}
}
