package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/advice"
	"deckhand/internal/control"
	"deckhand/internal/datadir"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/secret"
	"deckhand/internal/store"
)

// Space that a data directory needs.
const (
	minBytes  = 100 << 20
	minInodes = 1000
)

// DataDir checks that a folder can be the data directory. A missing one is created by the server.
func DataDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return creatable(dir)
	case errors.Is(err, fs.ErrPermission):
		return advice.With(err, "run this command as the user of the server, or: chown -R USER %s", dir)
	case err != nil:
		return advice.With(err, "choose another --data-dir")
	case !info.IsDir():
		return advice.With(errors.New("not a folder"), "choose another --data-dir")
	case info.Mode().Perm()&0o077 != 0:
		return advice.With(errors.New("other users can read it"), "chmod 700 %s", dir)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return otherUser(int(s.Uid), dir)
	}
	if err := writable(dir); err != nil {
		return err
	}
	return space(dir)
}

// otherUser is the error for a data directory of another user.
func otherUser(uid int, dir string) error {
	sudo := fmt.Sprintf("sudo -u '#%d'", uid)
	if uid == 0 {
		sudo = "sudo"
	}
	return advice.With(fmt.Errorf("it belongs to user %d, and this command runs as user %d", uid, os.Geteuid()), "run this command and the server as the same user, for example: %s deckhand doctor --data-dir %s", sudo, dir)
}

// creatable checks that a missing folder can be made.
func creatable(dir string) error {
	parent := filepath.Dir(filepath.Clean(dir))
	for {
		info, err := os.Stat(parent)
		if err == nil && !info.IsDir() {
			return advice.With(fmt.Errorf("cannot be created: %s is not a folder", parent), "choose another --data-dir")
		}
		if err == nil {
			break
		}
		up := filepath.Dir(parent)
		if up == parent {
			break
		}
		parent = up
	}
	if err := writable(parent); err != nil {
		return advice.With(fmt.Errorf("cannot be created in %s: %w", parent, errors.Unwrap(err)), "install -d -m 700 -o USER %s, where USER runs the server, or choose another --data-dir", dir)
	}
	return space(parent)
}

func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".doctor-")
	switch {
	case errors.Is(err, syscall.EROFS):
		return advice.With(err, "mount the file system writable (mount -o remount,rw …), or choose another --data-dir")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return advice.With(err, "free some space, or choose a --data-dir on another disk")
	case err != nil:
		return advice.With(err, "give the folder to the user of the server: chown -R USER %s", dir)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func space(dir string) error {
	var disk syscall.Statfs_t
	if syscall.Statfs(dir, &disk) != nil {
		return nil
	}
	const fix = "free some space (df -h %s), or choose a --data-dir on another disk"
	if free := int64(disk.Bavail) * int64(disk.Bsize); free < minBytes {
		return advice.With(fmt.Errorf("only %d MiB of disk space left; at least 100 MiB are needed", free>>20), fix, dir)
	}
	if disk.Files > 0 && disk.Ffree < minInodes {
		return advice.With(fmt.Errorf("only %d inodes left on the disk", disk.Ffree), "delete files that are not needed (df -i %s), or choose a --data-dir on another disk", dir)
	}
	return nil
}

// Address checks that a server could listen there, or that the one of the data directory does.
func Address(addr, dataDir string) error {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRINUSE) && control.Running(dataDir):
		return nil // the server of this data directory
	case errors.Is(err, syscall.EADDRINUSE) && datadir.InUse(dataDir):
		return advice.With(errors.New("in use, probably by the server of this data directory, which does not respond"), "look at its log: journalctl -u deckhand")
	case errors.Is(err, syscall.EADDRINUSE):
		return advice.With(errors.New("in use by another program"), "find the program with: ss -ltnp 'sport = :%s'; stop it, or choose another --addr", port(addr))
	case errors.Is(err, syscall.EACCES):
		return advice.With(err, "ports below 1024 need root: choose another --addr behind a reverse proxy, or add AmbientCapabilities=CAP_NET_BIND_SERVICE and CapabilityBoundingSet=CAP_NET_BIND_SERVICE to the systemd unit")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advice.With(errors.New("this machine does not have this address"), "list its addresses with: ip addr; and correct --addr")
	}
	return advice.With(err, "set --addr to HOST:PORT, such as 127.0.0.1:3000")
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// Git checks that git is installed, which local sandboxes use. Container images have their own.
func (r *Report) Git(driver string) {
	path, err := exec.LookPath("git")
	if p, _ := drivers.Find(driver); err != nil && p.Images {
		r.Check("git", "not installed here; docker sandboxes use the one in their image", nil)
		return
	}
	if err != nil {
		r.Check("git", "", advice.With(errors.New("not found in PATH: agents in local sandboxes cannot use repositories"), "install it: apt-get install git (Debian, Ubuntu), dnf install git (Fedora)"))
		return
	}
	r.Check("git", path, nil)
}

// clockSlack is how far clocks of disks and machines may differ.
const clockSlack = 2 * time.Minute

// Clock checks that the clock is not behind the files that were written by an earlier server.
func Clock(now time.Time, files ...string) error {
	for _, f := range files {
		info, err := os.Stat(f)
		if err == nil && info.ModTime().Sub(now) > clockSlack {
			return advice.With(fmt.Errorf("the clock is wrong: %s was written at %s, and it is %s now", f, info.ModTime().Format(time.RFC3339), now.Format(time.RFC3339)),
				"set the clock: timedatectl set-ntp true. Logins and sign-on fail with a wrong clock")
		}
	}
	return nil
}

// Database is an open database.
type Database interface {
	Check(ctx context.Context) error
	secret.KeyStore
	Close() error
}

// Opening are the options for opening the database: Existing does not create one, and Exclusive, for repairs, fails while a server uses it.
type Opening struct{ Existing, Exclusive bool }

// Stored checks the database and the master key, if there is a database. It creates nothing. The path is empty if the
// database is not a file. With repair, it repairs what it can.
func (r *Report) Stored(ctx context.Context, dataDir, path string, repair bool, open func(ctx context.Context, o Opening) (Everything, error)) {
	r.Flags = cmp.Or(r.Flags, "--data-dir "+dataDir)
	_, err := os.Stat(dataDir)
	remote := errors.Is(err, fs.ErrNotExist)
	if _, err := os.Stat(path); path != "" && (remote || errors.Is(err, fs.ErrNotExist)) {
		r.Check("database opens", "none yet: the server creates it", datadir.CheckWorkspaces(filepath.Join(dataDir, boxes), ""))
		return
	}
	db, err := open(ctx, Opening{Existing: remote || !repair, Exclusive: repair && !remote})
	if errors.Is(err, store.ErrNone) {
		r.Check("database opens", "the database server responds; the tables are created by the server", datadir.CheckWorkspaces(filepath.Join(dataDir, boxes), ""))
		return
	}
	if errors.Is(err, store.ErrOutdated) {
		r.Warn("database opens", err.Error()+", so the stored data was not verified", "start this version of deckhand on it once, and run the command again")
		return
	}
	if err != nil {
		r.Check("database opens", "", advice.With(err, "%s", databaseFix(err, path)))
		return
	}
	defer db.Close()
	r.whole(ctx, db, path, func() {
		if remote {
			r.remote(ctx, db, dataDir, repair)
		} else {
			r.Everything(ctx, db, dataDir, repair)
		}
	})
}

// whole checks the database, and runs the checks of what it contains unless it cannot be read. The check of the database names one damaged
// conversation at most; verifying all of them finds the others.
func (r *Report) whole(ctx context.Context, db Everything, path string, contents func()) {
	var one interface{ DamagedConversation() string }
	err := db.Check(ctx)
	switch {
	case err == nil:
		r.Check("database opens", "no damage found", nil)
	case errors.As(err, &one):
		r.Check("database opens", "can be read", nil)
	default:
		r.Check("database opens", "", advice.With(err, "%s", databaseFix(err, path)))
		return
	}
	failed := r.failed
	contents()
	if one != nil && failed == r.failed { // the checks of the conversations did not find it, or repaired it
		if err := db.Check(ctx); err != nil {
			r.Check("database", "", advice.With(err, "%s", databaseFix(err, path)))
		}
	}
}

// remote verifies the database of servers whose data directories are on other machines.
func (r *Report) remote(ctx context.Context, db Everything, dataDir string, repair bool) {
	if repair {
		r.Check("repair", "", advice.With(fmt.Errorf("there is no data directory at %s, in which a repair saves removed events", dataDir), "use the --data-dir of a server"))
	}
	if r.MasterKey == "" {
		r.Warn("master key", "not available: secrets are not verified", "use the --data-dir of a server, or set "+secret.EnvMaster)
		r.unchecked = Unchecked{"the master key is not available", "use the --data-dir of a server, or set " + secret.EnvMaster + " and run: " + r.command()}
		r.conversations(ctx, db, dataDir, false)
		return
	}
	r.Everything(ctx, db, dataDir, false)
}

// databaseFix says what to do about an error of the database.
func databaseFix(err error, path string) string {
	if err == nil {
		return ""
	}
	text := strings.ToLower(err.Error())
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("newer version"):
		return "install the newer version of deckhand again, or restore a backup from before the upgrade"
	case errors.Is(err, syscall.ENOTDIR):
		return "choose another --data-dir: a part of the path is not a folder"
	case has("another server uses"):
		return "stop all servers that use this database, and run the command again"
	case path == "" && has("conversation"):
		return "restore a backup"
	case path == "":
		return "check that PostgreSQL runs and that psql can connect with the same URL and password from this machine"
	case has("damaged", "malformed", "not a database", "corrupt"):
		return "stop the server and restore a backup; without one, save what can be read: sqlite3 " + path + " .recover | sqlite3 recovered.db"
	case has("locked"):
		return "another program has the database open: stop it (fuser " + path + ")"
	case has("full"):
		return "free some space on the disk: df -h " + filepath.Dir(path)
	case errors.Is(err, fs.ErrPermission), has("permission", "unable to open", "read-only", "readonly"):
		return "give the file to the user of the server: chown USER " + path + "*; chmod 600 " + path + "*"
	}
	return "check the file " + path + " and its disk; if it cannot be repaired, restore a backup"
}
