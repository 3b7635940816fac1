package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Service is where the service of the package has its config file and its data, the file with its environment variables, and its systemd
// credentials while it is running. User owns the data.
type Service struct{ Config, Data, Environment, Credentials, User string }

// Packaged is the service of the packages for Linux.
var Packaged = Service{Config: "/etc/deckhand/deckhand.yaml", Data: "/var/lib/deckhand", Environment: "/etc/default/deckhand", Credentials: "/run/credentials/deckhand.service", User: "deckhand"}

// restore is the command that can create the service's data.
const restore = "restore"

// manages lists the commands that use the service's data by default.
var manages = []string{"backup", "config", "doctor", "health", "key", "log-level", restore, "user"}

// of reports whether a command is for the service: it names no other data directory or config file, the service is installed, and the
// user can access its data and has no server in the default data directory. config is the config file of the command line or environment.
func (s Service) of(args []string, config string) bool {
	verb := command(args)
	dir, _ := expandHome(typed(args, "--data-dir", "DECKHAND_DATA_DIR")) // the parser reports an error
	switch {
	case config != "" && config != s.Config, !slices.Contains(manages, verb),
		dir != "" && filepath.Clean(dir) != s.Data,
		dir == "" && isServerData(DefaultDataDir()):
		return false
	}
	_, err := os.Stat(s.Data)
	return opens(s.Config) && (opens(s.Data) || verb == restore && errors.Is(err, fs.ErrNotExist))
}

// opens reports whether this process can read a file or folder.
func opens(path string) bool {
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// isServerData reports whether a folder is the data directory of a server. deckhand run and sessions keep their data in folders below it.
func isServerData(dir string) bool {
	for _, name := range []string{"deckhand.db", "server.lock"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// adopt gives this process the settings that systemd gives the service: environment variables and credentials. Those that this process has
// take precedence. A file that only root can read is left out if the user is not root.
func (s Service) adopt() error {
	b, err := os.ReadFile(s.Environment)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot read the environment of the service: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if _, set := os.LookupEnv(name); set || !strings.HasPrefix(name, "DECKHAND_") {
			continue
		}
		if n := len(value) - 1; n > 0 && value[0] == value[n] && (value[0] == '"' || value[0] == '\'') {
			value = value[1:n]
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if _, err := os.Stat(s.Credentials); err == nil && os.Getenv("CREDENTIALS_DIRECTORY") == "" {
		return os.Setenv("CREDENTIALS_DIRECTORY", s.Credentials)
	}
	return nil
}

// SwitchUser switches from root to the owner of the service's data, if the command is for the service. It first creates folder for the
// owner, if it is missing. Only backup and restore call it; for other commands, Load does the same.
func (r *Resolver) SwitchUser(folder string) error {
	if !r.service {
		return nil
	}
	return r.Service.switchUser(folder)
}

// switchUser switches from root to the user who owns the data and runs the service. Otherwise root could become the owner of
// files of the service.
func (s Service) switchUser(folders ...string) error {
	uid, gid, err := s.owner()
	if err != nil || os.Geteuid() != 0 || uid == 0 {
		return err
	}
	for _, dir := range folders {
		if err := createFor(uid, gid, dir); err != nil {
			return err
		}
	}
	groups := []int{}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		ids, _ := u.GroupIds()
		for _, id := range ids {
			if n, err := strconv.Atoi(id); err == nil {
				groups = append(groups, n)
			}
		}
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return fmt.Errorf("cannot switch to the user of the service, the owner of %s: %w", s.Data, err)
	}
	return nil
}

// owner returns the owner of the data, or the user of the service if there is no data.
func (s Service) owner() (uid, gid int, err error) {
	info, err := os.Stat(s.Data)
	if err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(owner.Uid), int(owner.Gid), nil
		}
		return 0, 0, nil
	}
	u, lookup := user.Lookup(s.User)
	if !errors.Is(err, fs.ErrNotExist) || lookup != nil {
		return 0, 0, errors.Join(err, lookup)
	}
	uid, err = strconv.Atoi(u.Uid)
	gid, wrong := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(err, wrong)
}

// createFor creates a folder that only its user can access. An existing one is not changed.
func createFor(uid, gid int, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.Lchown(dir, uid, gid)
}

// Hint returns advice for managing the service if dir is not its data directory; "" if there is no service.
func (s Service) Hint(dir string) string {
	if !s.other(dir) {
		return ""
	}
	return "; the deckhand service of this machine uses " + s.Data + ": run the command with sudo and --data-dir " + s.Data
}

// ClientHint is Hint for commands that connect to a server.
func (s Service) ClientHint(dir string) string {
	if !s.other(dir) {
		return ""
	}
	return "; for the deckhand service of this machine, use --server with its URL, such as http://127.0.0.1:3000, and --key-file with a file that contains your key"
}

// other reports whether there is a service and dir is not its data directory, or the user cannot access it.
func (s Service) other(dir string) bool {
	_, err := os.Lstat(s.Data)
	return err == nil && (filepath.Clean(dir) != s.Data || !opens(dir))
}

// command returns the first argument that is not a flag or the value of --config.
func command(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--config":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}
