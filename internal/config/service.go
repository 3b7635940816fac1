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
// credentials while it is running.
type Service struct{ Config, Data, Environment, Credentials string }

// Packaged is the service of the packages for Linux.
var Packaged = Service{Config: "/etc/deckhand/deckhand.yaml", Data: "/var/lib/deckhand", Environment: "/etc/default/deckhand", Credentials: "/run/credentials/deckhand.service"}

// manages lists the commands that use the service's data by default.
var manages = []string{"key", "user", "config", "log-level", "health", "doctor"}

// of reports whether a command is for the service: it names no other data directory or config file, the service is installed, and the
// user can access its data and has no data directory in the default location. config is the config file of the command line or environment.
func (s Service) of(args []string, config string) bool {
	names := func(arg string) bool { return arg == "--data-dir" || strings.HasPrefix(arg, "--data-dir=") }
	if os.Getenv("DECKHAND_DATA_DIR") != "" || slices.ContainsFunc(args, names) || config != "" && config != s.Config || !slices.Contains(manages, command(args)) {
		return false
	}
	if _, err := os.Stat(DefaultDataDir()); err == nil {
		return false
	}
	dir, err := os.Open(s.Data) // fails without permission
	if err != nil {
		return false
	}
	dir.Close()
	f, err := os.Open(s.Config)
	if err != nil {
		return false
	}
	f.Close()
	return true
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

// become gives up root and continues as the user who owns the data, as the service does. Otherwise files of the service
// could end up with root as their owner.
func (s Service) become() error {
	info, err := os.Stat(s.Data)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || owner.Uid == 0 {
		return nil
	}
	groups := []int{}
	if u, err := user.LookupId(strconv.Itoa(int(owner.Uid))); err == nil {
		ids, _ := u.GroupIds()
		for _, id := range ids {
			if n, err := strconv.Atoi(id); err == nil {
				groups = append(groups, n)
			}
		}
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(int(owner.Gid)), syscall.Setuid(int(owner.Uid))); err != nil {
		return fmt.Errorf("cannot switch to the user of the service, the owner of %s: %w", s.Data, err)
	}
	return nil
}

// Hint returns advice for managing the service if dir is not its data directory; "" if there is no service.
func (s Service) Hint(dir string) string {
	if _, err := os.Lstat(s.Data); err != nil || filepath.Clean(dir) == s.Data {
		return ""
	}
	return "; the deckhand service of this machine uses " + s.Data + ": run the command with sudo -u deckhand, --config " + s.Config + " and --data-dir " + s.Data
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
