package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox/docker/dockertest"
)

// usedDir makes a data directory that a server has used.
func usedDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	if code := b.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	must(t, "key", "create", "--init", "--user", "ada", "--data-dir", dir)
	return dir
}

// Each failed check says what is wrong and, on the next line, which command or setting repairs it. All failures are
// real ones.
func TestDoctorSaysTheFix(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(change func(dir string) error) func(*testing.T) string {
		return func(t *testing.T) string {
			dir := usedDir(t)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	fresh := func(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }
	for name, c := range map[string]struct {
		dir   func(t *testing.T) string
		args  string
		shell string // runs before, in namespaces of its own, where $DIR is the data directory
		says  string
		fix   string
	}{
		"not a folder":          {dir: func(*testing.T) string { return file }, says: "FAIL  data dir .*not a folder", fix: "choose another --data-dir"},
		"cannot be created":     {dir: func(*testing.T) string { return filepath.Join(file, "data") }, says: "FAIL  data dir .*not a (folder|directory)", fix: "choose another --data-dir"},
		"readable by others":    {dir: with(func(dir string) error { return os.Chmod(dir, 0o755) }), says: "FAIL  data dir .*other users can read it", fix: "chmod 700 /"},
		"disk full":             {dir: fresh, shell: `mkdir -m 700 $DIR; mount -t tmpfs -o size=1m,mode=700 none $DIR`, says: "FAIL  data dir .*MiB of disk space left", fix: "free some space .df -h"},
		"read-only file system": {dir: fresh, shell: `mkdir -m 700 $DIR; mount -t tmpfs -o size=200m,mode=700 none $DIR; mount -o remount,ro $DIR`, says: "FAIL  data dir .*read-only file system", fix: "mount -o remount,rw"},
		"no inodes":             {dir: fresh, shell: `mkdir -m 700 $DIR; mount -t tmpfs -o size=200m,mode=700,nr_inodes=20 none $DIR`, says: "FAIL  data dir .*inodes left", fix: "df -i"},
		"database damaged": {dir: with(func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "deckhand.db"), []byte(strings.Repeat("damage ", 1000)), 0o600)
		}),
			says: "FAIL  database opens .*", fix: "restore a backup.*sqlite3 .*\\.recover"},
		"wrong master key": {dir: with(func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "master.key"), []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600)
		}), says: "FAIL  master key .*", fix: "restore the master.key"},
		"master key readable by others": {dir: with(func(dir string) error { return os.Chmod(filepath.Join(dir, "master.key"), 0o644) }), says: "FAIL  master key +/[^ ]*master.key is readable by other users", fix: "chmod 600 .*master.key"},
		"master key missing": {dir: with(func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "master.key")), os.Remove(filepath.Join(dir, "master.key.lock")))
		}), says: "FAIL  master key +the file with the master key is missing", fix: "restore the master.key"},
		"not a master key": {dir: with(func(dir string) error { return os.WriteFile(filepath.Join(dir, "master.key"), []byte("x"), 0o600) }),
			says: "FAIL  master key .*does not contain a master key", fix: "restore the master.key"},
		"database removed": {dir: with(func(dir string) error {
			names, _ := filepath.Glob(filepath.Join(dir, "deckhand.db*"))
			for _, n := range names {
				if err := os.Remove(n); err != nil {
					return err
				}
			}
			return nil
		}), says: "FAIL  database opens .*belong to another database", fix: "restore it from a backup.*mv .*/boxes"},
		"no such root file system": {dir: fresh, args: "--sandbox local --sandbox-rootfs /nonexistent", says: "FAIL  sandbox .*--sandbox-rootfs .*/nonexistent", fix: "correct the flag that it names"},
		"not a public URL":         {dir: fresh, args: "--public-url foo", says: "FAIL  settings .*--public-url must be", fix: "correct the setting"},
		"no TLS":                   {dir: fresh, args: "--addr 0.0.0.0:0", says: "FAIL  settings .*keys would be sent unencrypted", fix: "correct the setting"},
		"a flag of serve":          {dir: fresh, args: "--metrics-addr nowhere", says: "FAIL  settings .*--metrics-addr", fix: "correct the setting"},
		"clock": {dir: with(func(dir string) error {
			later := time.Now().Add(24 * time.Hour)
			return os.Chtimes(filepath.Join(dir, "deckhand.db"), later, later)
		}), says: "FAIL  clock .*the clock is wrong", fix: "timedatectl set-ntp true"},
		"address in use":        {dir: fresh, args: "--addr " + taken.Addr().String(), says: "FAIL  address .*in use", fix: "ss -ltnp .*--addr"},
		"address elsewhere":     {dir: fresh, args: "--addr 203.0.113.7:3000 --behind-proxy", says: "FAIL  address .*does not have this address", fix: "ip addr"},
		"privileged port":       {dir: fresh, args: "--addr 127.0.0.1:80", shell: `echo 1024 > /proc/sys/net/ipv4/ip_unprivileged_port_start 2>/dev/null; DROP=cap_net_bind_service`, says: "FAIL  address .*permission denied", fix: "CAP_NET_BIND_SERVICE"},
		"no git":                {dir: fresh, shell: `export PATH=/nonexistent`, says: "FAIL  git .*not found", fix: "apt-get install git"},
		"no docker socket":      {dir: fresh, args: "--sandbox docker --docker-host unix:///nonexistent/docker.sock", says: "FAIL    docker .*container engine", fix: "Start the container engine that listens on unix:///nonexistent/docker.sock, or correct --docker-host"},
		"no user namespaces":    {dir: fresh, args: "--sandbox local", shell: `echo 0 > /proc/sys/user/max_user_namespaces`, says: "FAIL    local .*user namespaces: not available", fix: "sysctl -w user.max_user_namespaces"},
		"no control groups":     {dir: fresh, args: "--sandbox local", shell: `mount -t tmpfs none /sys/fs/cgroup`, says: "warn    local .*limits on memory", fix: "Delegate=yes.*control group of this command"},
		"no settings of a user": {dir: usedDir, args: "--model --user ada", says: "FAIL  model .*has no stored settings", fix: "--user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := c.dir(t)
			args := append([]string{"doctor", "--data-dir", dir}, strings.Fields(c.args)...)
			if !strings.Contains(c.args, "--sandbox") {
				args = append(args, "--sandbox", "host")
			}
			if !strings.Contains(c.args, "--addr") {
				args = append(args, "--addr", "127.0.0.1:0")
			}
			cmd := process(args...)
			if c.shell != "" {
				cmd = inNamespaces(t, cmd, dir, c.shell)
			}
			before, _ := os.ReadDir(dir)
			b, err := cmd.CombinedOutput()
			out := string(b)
			if after, _ := os.ReadDir(dir); c.shell == "" && len(after) != len(before) {
				t.Errorf("the data directory had %v, and has %v", before, after)
			}
			if exit := (*exec.ExitError)(nil); strings.HasPrefix(c.says, "FAIL") && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
				t.Errorf("it ended with %v", err)
			}
			if !regexp.MustCompile(`(?m)^` + c.says + `.*\n +fix: .*` + c.fix).MatchString(out) {
				t.Errorf("%q with the fix %q is missing in\n%s", c.says, c.fix, out)
			}
			lines := strings.Split(out, "\n")
			for i, line := range lines {
				if strings.HasPrefix(line, "FAIL") && !strings.Contains(lines[i+1], "fix: ") {
					t.Errorf("no fix: %s", line)
				}
			}
		})
	}
}

// doctor looks at its own control group, so a server without limits says so itself.
func TestServerWithoutLimitsSaysSo(t *testing.T) {
	t.Parallel()
	needLocal(t)
	dir := t.TempDir()
	args := append([]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0"}, withSandbox(t, "local")...)
	cmd := inNamespaces(t, process(args...), dir, `mount -t tmpfs none /sys/fs/cgroup`)
	var logs syncBuffer
	cmd.Stderr = &logs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), " is at "); {
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if got := logs.String(); !strings.Contains(got, `msg="sandboxes have no limits on memory, processes and CPU" why="control groups cannot be used`) {
		t.Errorf("logged %s", got)
	}
}

// inNamespaces runs a command as root of namespaces of its own, after a script.
func inNamespaces(t *testing.T, cmd *exec.Cmd, dir, script string) *exec.Cmd {
	t.Helper()
	if err := exec.Command("unshare", "-Urm", "true").Run(); err != nil {
		dockertest.Missing(t, "namespaces cannot be made with unshare")
	}
	flags := "-Urm"
	if strings.Contains(script, "/net/") {
		flags = "-Urmn"
	}
	run := `exec "$@"`
	if strings.Contains(script, "DROP=") {
		script = strings.ReplaceAll(script, "DROP=", "drop=")
		run = `ip link set lo up; exec setpriv --bounding-set=-net_bind_service --inh-caps=-net_bind_service "$@"`
	}
	wrapped := exec.Command("unshare", append([]string{flags, "/bin/sh", "-c", script + "\n" + run, "sh"}, cmd.Args...)...)
	wrapped.Env = append(cmd.Env, "DIR="+dir)
	return wrapped
}

// A model that cannot be reached is reported with what to do.
func TestDoctorOfAnUnreachableModel(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	b := serve(t, dir)
	if code, text, _ := b.raw("POST", "/api/settings", `{"llm_model":"openai/gone","llm_api_key":"k-0123456789","llm_base_url":"http://127.0.0.1:9/v1"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	if code := b.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	code, out, _ := command(t, "doctor", "--data-dir", dir, "--sandbox", "host", "--addr", "127.0.0.1:0", "--model")
	if code != 1 || !regexp.MustCompile(`(?m)^FAIL  model +agents cannot use openai/gone\n +fix: .*base URL`).MatchString(out) || strings.Contains(out, "k-0123456789") || !strings.Contains(out, "warn  sandbox          host works with restrictions, see below") {
		t.Errorf("exit code %d, says\n%s", code, out)
	}
}
