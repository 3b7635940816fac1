package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// writeFence stores the claim of the newest owner.
func (r *Runner) writeFence(claim []byte) error {
	tmp := r.fenceFile() + ".new"
	err := os.WriteFile(tmp, claim, 0o600)
	if err == nil {
		return os.Rename(tmp, r.fenceFile()) // so that half a number is never believed
	}
	_ = os.Remove(tmp)
	// A full disk has no room for another file, but for this one: a claim is never shorter than
	// the one before.
	f, e := os.OpenFile(r.fenceFile(), os.O_WRONLY, 0)
	if e != nil {
		return err
	}
	_, err = f.WriteAt(claim, 0)
	return errors.Join(err, f.Close())
}

func (r *Runner) fenceFile() string { return filepath.Join(r.config.State, "fence") }

func (r *Runner) readFence() error {
	b, err := os.ReadFile(r.fenceFile())
	if errors.Is(err, os.ErrNotExist) || len(b) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	r.fence, err = strconv.ParseInt(string(b), 10, 64)
	return err
}
