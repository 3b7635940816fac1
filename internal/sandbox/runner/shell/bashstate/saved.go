package bashstate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/runner/spawn"
)

// Saved is a shell as it is kept while its sandbox is suspended.
type Saved struct {
	Name string `json:"name"`
	// State is nil if no command changed the shell. Dir is the working directory without links.
	State *State `json:"state,omitempty"`
	Dir   string `json:"dir"`
	// Unread is output that no call has got, Exit how the command ended that wrote it.
	Unread   []byte `json:"unread,omitempty"`
	Exit     *int   `json:"exit,omitempty"`
	NewShell bool   `json:"new_shell,omitempty"`
}

// Place is where the shell continues: where it was, by the same name if that still leads
// there, or the nearest folder above that exists.
func (k *Saved) Place() string {
	if real, err := filepath.EvalSymlinks(k.State.Dir); err == nil && real == k.Dir {
		return k.State.Dir
	}
	dir := k.Dir
	for dir != "/" {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// Readable checks that bash can read its functions as it printed them. There are some that
// it prints wrongly.
func (s *State) Readable(ctx context.Context, spawner *spawn.Spawner, env []string) error {
	fd, err := unix.MemfdCreate("functions", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(fd), "functions")
	defer in.Close()
	if _, err := in.WriteAt([]byte(s.Functions), 0); err != nil {
		return err
	}
	p, err := spawner.Start(spawn.Attr{Args: []string{"bash", "--norc", "--noprofile", "-O", "extglob", "-n"}, Dir: "/", Env: env,
		Files: []*os.File{in, nil, nil}, Together: true})
	if err != nil {
		return err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = p.Signal(syscall.SIGKILL) })
	defer unwatch()
	if p.Wait().Code != 0 {
		return errors.New("the shell has functions that it cannot read again")
	}
	return nil
}

// OnlyOwnFiles reports whether a shell that reads its commands from this pipe has no other
// open files but its terminal.
func OnlyOwnFiles(pid int, pipe string) bool {
	fds := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		to, _ := os.Readlink(fds + e.Name())
		switch e.Name() {
		case "0":
			if to != pipe {
				return false
			}
		case "1", "2", "255":
			if to != "/dev/tty" && !strings.HasPrefix(to, "/dev/pts/") {
				return false
			}
		default:
			return false
		}
	}
	return true
}
