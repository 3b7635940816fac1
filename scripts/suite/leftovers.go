package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory is a folder in memory that has room and may hold programs, if there is
// one: the tests sync thousands of files, and what they check does not need a disk.
func memory() string {
	const dir = "/dev/shm"
	if roomy(dir) && executable(dir) {
		return dir
	}
	return ""
}

// makeTemp makes the folder in which the tests make theirs, in memory if possible.
func makeTemp() (string, error) {
	dir, err := os.MkdirTemp(memory(), "dh")
	if err != nil {
		return "", fmt.Errorf("no folder for temporary files can be made: %w", err)
	}
	// Sandboxes run as other users.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// executable tells whether programs in a folder may be run.
func executable(dir string) bool {
	own, err := os.MkdirTemp(dir, "try")
	if err != nil {
		return false
	}
	defer os.RemoveAll(own)
	file := filepath.Join(own, "try")
	return os.WriteFile(file, []byte("#!/bin/sh\nexit 0\n"), 0o700) == nil && exec.Command(file).Run() == nil
}

// remaining lists what the tests left: files in their folder, processes that
// know the folder from their environment, mounts below it, and control groups,
// network namespaces and containers that were not there before.
func remaining(temp string, before, now map[string]bool) []string {
	var out []string
	entries, _ := os.ReadDir(temp)
	for _, e := range entries {
		out = append(out, "folder "+filepath.Join(temp, e.Name()))
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		for line := range strings.Lines(string(mounts)) {
			if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], temp+"/") {
				out = append(out, "mount "+f[4])
			}
		}
	}
	out = append(out, processes(temp)...)
	for what := range now {
		if !before[what] {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

func processes(temp string) []string {
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid := filepath.Base(dir)
		if pid == fmt.Sprint(os.Getpid()) {
			continue
		}
		command, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		exe, _ := os.Readlink(dir + "/exe")
		if len(command) > 0 && bytes.Contains(slices.Concat(command, environ, []byte(cwd), []byte(exe)), []byte(temp)) {
			out = append(out, fmt.Sprintf("process %s: %s", pid, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))))
		}
	}
	return out
}

// outside is what tests could make that is not in their folder. Control groups that are
// in use are listed only if inUse is set.
func outside(inUse bool) map[string]bool {
	found := map[string]bool{}
	for what, patterns := range map[string][]string{
		"control group":     {"/sys/fs/cgroup/*deckhand*", "/sys/fs/cgroup/*/*deckhand*", "/sys/fs/cgroup/*/*deckhand*/*"},
		"network namespace": {"/run/netns/*"},
	} {
		for _, p := range patterns {
			paths, _ := filepath.Glob(p)
			for _, path := range paths {
				if info, err := os.Stat(path); err == nil && ours(info) && (info.IsDir() && (inUse || !populated(path)) || what == "network namespace") {
					found[what+" "+path] = true
				}
			}
		}
	}
	if os.Getenv("DOCKER_HOST") != "" {
		ids, _ := exec.Command("docker", "ps", "--all", "--quiet").Output()
		for _, id := range strings.Fields(string(ids)) {
			found["container "+id] = true
		}
	}
	return found
}

// ours says that the tests could have made a file: it belongs to their user.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Getuid()
}

// populated says that there are processes in a control group, or groups below it. The
// group is in use then: a process of the tests is listed by itself, and others are none of
// their business.
func populated(group string) bool {
	entries, _ := os.ReadDir(group)
	for _, e := range entries {
		if e.IsDir() {
			return true
		}
	}
	procs, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	return err != nil || len(procs) > 0
}

// checkLeftovers says what remains, and whether the run may pass: nothing may remain.
// What was told to end gets a moment to do so.
func checkLeftovers(w io.Writer, temp string, before map[string]bool) bool {
	left := remaining(temp, before, outside(false))
	for deadline := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = remaining(temp, before, outside(false)) {
		time.Sleep(200 * time.Millisecond)
	}
	return reportLeftovers(w, left, others(temp))
}

// reportLeftovers says what remains. Control groups, network namespaces and containers do
// not tell whose they are: while another Deckhand runs, they are listed and no more.
func reportLeftovers(w io.Writer, left []string, others bool) bool {
	clean := true
	for _, l := range left {
		fmt.Fprintf(w, "LEFT BEHIND %s\n", l)
		ours := strings.HasPrefix(l, "process ") || strings.HasPrefix(l, "mount ") || strings.HasPrefix(l, "folder ")
		clean = clean && !ours && others
	}
	if len(left) > 0 && clean {
		fmt.Fprintln(w, "another Deckhand runs on this machine: it may be the owner")
	}
	return clean
}

// others tells whether another server, sandbox or suite runs on this machine.
func others(temp string) bool {
	self, _ := os.Executable()
	paths, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, path := range paths {
		dir := filepath.Dir(path)
		if filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue
		}
		exe, _ := os.Readlink(path)
		environ, _ := os.ReadFile(dir + "/environ")
		name := strings.TrimSuffix(filepath.Base(exe), " (deleted)")
		if exe != self && (name == "deckhand" || name == "runner" || name == "suite") && !bytes.Contains(environ, []byte(temp)) {
			return true
		}
	}
	return false
}

// environment is this process's, with other folders for temporary files and for
// the user's own: what people have in their home changes what shells and git do.
func environment(temp, home string) []string {
	env := slices.DeleteFunc(slices.Clone(os.Environ()), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "HOME=")
	})
	return append(append(env, caches()...), "TMPDIR="+temp, "HOME="+home)
}

// caches is where tools keep what they fetched and built, and how npm reaches its
// registry. All of that stays where it was.
func caches() []string {
	var env []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOENV"} {
		if value, err := exec.Command("go", "env", name).Output(); err == nil {
			env = append(env, name+"="+strings.TrimSpace(string(value)))
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache)
	}
	if home, err := os.UserHomeDir(); err == nil {
		env = append(env, "NPM_CONFIG_CACHE="+filepath.Join(home, ".npm"), "NPM_CONFIG_USERCONFIG="+filepath.Join(home, ".npmrc"))
	}
	return env
}
