// Package doctor checks whether a server can run on this machine, and whether the
// log of a conversation is intact. It reports problems with their fixes.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"deckhand/api"
	"deckhand/internal/advice"
	"deckhand/internal/sandbox/drivers"
)

// Report writes what was found: a line for each check, and below a failed one how to fix it.
type Report struct {
	Out io.Writer
	// MasterKey is a master key from outside the data directory; "" for none.
	MasterKey string
	// Flags are those with which other commands use the same data, for fixes. Default: --data-dir alone.
	Flags string

	failed    int
	unchecked Unchecked
	// skipped is true if there are conversations whose hash chains were not checked.
	skipped bool
}

// Check writes one finding; an error is a failure.
func (r *Report) Check(what, detail string, err error) {
	if err == nil {
		fmt.Fprintf(r.Out, "ok    %-16s %s\n", what, detail)
		return
	}
	r.failed++
	text, fix := advice.Split(err)
	fmt.Fprintf(r.Out, "FAIL  %-16s %s\n", what, text)
	r.fix(fix)
}

// Warn writes a finding that is not a failure.
func (r *Report) Warn(what, detail, fix string) {
	fmt.Fprintf(r.Out, "warn  %-16s %s\n", what, detail)
	r.fix(fix)
}

func (r *Report) fix(fix string) {
	if fix != "" {
		fmt.Fprintf(r.Out, "      %-16s fix: %s\n", "", fix)
	}
}

// command returns a command of the doctor on the same data.
func (r *Report) command(args ...string) string { return command(r.Flags, args...) }

func command(flags string, args ...string) string {
	return strings.Join(append(append([]string{"deckhand doctor"}, args...), flags), " ")
}

// Result ends the report; it is an error if a check failed.
func (r *Report) Result() error {
	switch {
	case r.failed == 1:
		return errors.New("1 check failed")
	case r.failed > 1:
		return fmt.Errorf("%d checks failed", r.failed)
	case r.skipped:
		fmt.Fprintln(r.Out, "No check failed, but the hash chains of conversations were not checked.")
		return nil
	}
	fmt.Fprintln(r.Out, "All checks passed.")
	return nil
}

// Model writes what came out of trying a model. An unknown result is a warning,
// and so is what agents can do without.
func (r *Report) Model(found api.ModelReport) {
	var err error
	if !found.OK {
		err = advice.With(fmt.Errorf("agents cannot use %s", found.Model), "see the lines below; change the model, its key or its base URL in Settings, Models")
	}
	r.Check("model", found.Model, err)
	for _, k := range found.Checks {
		switch {
		case k.OK != nil && *k.OK:
			r.Check("  "+k.Name, k.Message, nil)
		default:
			r.Warn("  "+k.Name, k.Message, "")
		}
	}
	for _, n := range found.Notes {
		r.Warn("  key", n, "")
	}
}

// Sandbox runs the checks of the sandbox driver, with a config for a temporary folder.
// It returns the name of the driver; "" if none can be opened.
func (r *Report) Sandbox(ctx context.Context, config func(dir string) drivers.Config) string {
	dir, err := os.MkdirTemp("", "deckhand-doctor-")
	if err != nil {
		r.Check("sandbox", "", advice.With(err, "make %s writable, or set TMPDIR to another folder", os.TempDir()))
		return ""
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // a sandbox's own user must get through
		r.Check("sandbox", "", err)
		return ""
	}
	d, err := drivers.Open(ctx, config(dir))
	if err != nil {
		r.Check("sandbox", "", advice.With(err, "correct the flag that it names, or set another driver with --sandbox"))
		return ""
	}
	defer d.Close()
	findings := drivers.Findings(ctx, d.Driver)
	fatal, warned := false, false
	for _, f := range findings {
		fatal, warned = fatal || f.Fatal, warned || !f.OK
	}
	switch {
	case fatal:
		r.Warn("sandbox", d.Name+" does not work, see below", "")
	case warned:
		r.Warn("sandbox", d.Name+" works with restrictions, see below", "")
	default:
		r.Check("sandbox", d.Name, nil)
	}
	for _, f := range findings {
		found := f.What + ": " + strings.TrimRight(f.Found, ".")
		switch {
		case f.Fatal:
			r.Check("  "+d.Name, "", advice.With(errors.New(found), "%s", f.Fix))
		case !f.OK:
			r.Warn("  "+d.Name, found, f.Fix)
		default:
			r.Check("  "+d.Name, f.What+": "+f.Found, nil)
		}
	}
	return d.Name
}
