package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// packaged is a root folder in which the scripts of the package run, with a systemctl that writes down its arguments.
type packaged struct {
	t         *testing.T
	root, bin string
	active    bool
	fails     bool // the service does not start
}

func newPackaged(t *testing.T) *packaged {
	t.Helper()
	p := &packaged{t: t, root: t.TempDir(), bin: t.TempDir()}
	for _, dir := range []string{"run/systemd/system", "usr/share/deckhand"} {
		if err := os.MkdirAll(filepath.Join(p.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.write("usr/share/deckhand/deckhand.yaml", "# template\n")
	for _, name := range []string{"chown", "getent"} { // the user exists, and the test is not root
		p.program(name, "exit 0")
	}
	return p
}

func (p *packaged) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.root, path), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *packaged) program(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// run runs a script and returns what it asked systemctl for and printed.
func (p *packaged) run(script string, args ...string) string {
	p.t.Helper()
	is := "exit 3"
	if p.active {
		is = "exit 0"
	}
	ends := ""
	if p.fails {
		ends = "case $1 in enable | restart) exit 1 ;; esac"
	}
	p.program("systemctl", "case $1 in is-active) "+is+" ;; esac\necho systemctl $*\n"+ends)
	cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
	cmd.Env = []string{"PATH=" + p.bin + ":" + os.Getenv("PATH"), "DPKG_ROOT=" + p.root}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
	return string(out)
}

// The service starts when the package is installed, also after it was removed. An upgrade restarts it only if it was running.
func TestPackageScriptsStartTheService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		pre, post []string
		active    bool
		starts    bool
		restarts  bool
	}{
		{"deb, first installation", []string{"install"}, []string{"configure", ""}, false, true, false},
		{"deb, after apt remove", []string{"install", "1.0"}, []string{"configure", "1.0"}, false, true, false},
		{"deb, upgrade", []string{"upgrade", "1.0"}, []string{"configure", "1.0"}, true, false, true},
		{"deb, upgrade of a stopped service", []string{"upgrade", "1.0"}, []string{"configure", "1.0"}, false, false, false},
		{"rpm, first installation", []string{"1"}, []string{"1"}, false, true, false},
		{"rpm, upgrade of a stopped service", []string{"2"}, []string{"2"}, false, false, false},
	} {
		p := newPackaged(t)
		p.active = c.active
		p.run("preinstall.sh", c.pre...)
		said := p.run("postinstall.sh", c.post...)
		if strings.Contains(said, "systemctl enable --now") != c.starts || strings.Contains(said, "systemctl restart") != c.restarts {
			t.Errorf("%s: %s", c.name, said)
		}
		if again := p.run("postinstall.sh", "configure", "1.0"); strings.Contains(again, "enable") {
			t.Errorf("%s: the next upgrade enables the service: %s", c.name, again)
		}
	}
}

// If the service does not start, the installation reports it and succeeds.
func TestPackageScriptsReportAFailedStart(t *testing.T) {
	t.Parallel()
	for _, upgrade := range []bool{false, true} {
		p := newPackaged(t)
		p.active, p.fails = upgrade, true
		if !upgrade {
			p.run("preinstall.sh", "install")
		}
		if said := p.run("postinstall.sh", "configure"); !strings.Contains(said, "Deckhand did not start") || strings.Contains(said, "Deckhand is running") {
			t.Errorf("upgrade %v: %s", upgrade, said)
		}
	}
}

// Removing the package ends sandboxes, too, with options that systemd 249 has.
func TestPackageScriptsEndSandboxes(t *testing.T) {
	t.Parallel()
	p := newPackaged(t)
	if said := p.run("preremove.sh", "remove"); !strings.Contains(said, "systemctl kill --signal=SIGKILL deckhand.service") {
		t.Errorf("on removal: %s", said)
	}
	if said := p.run("preremove.sh", "upgrade"); said != "" {
		t.Errorf("on an upgrade: %s", said)
	}
}

// The config file is made from the template once, and an upgrade keeps it.
func TestPackageScriptsKeepTheConfigFile(t *testing.T) {
	t.Parallel()
	p := newPackaged(t)
	read := func() string {
		b, err := os.ReadFile(filepath.Join(p.root, "etc/deckhand/deckhand.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	p.run("postinstall.sh", "configure", "")
	if got := read(); got != "# template\n" {
		t.Errorf("the config file is %q", got)
	}
	p.write("etc/deckhand/deckhand.yaml", "log-level: debug\n")
	p.write("usr/share/deckhand/deckhand.yaml", "# newer template\n")
	p.run("postinstall.sh", "configure", "1.0")
	if got := read(); got != "log-level: debug\n" {
		t.Errorf("the config file is %q", got)
	}
}

func TestInstallUnusualFiles(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "1.0", "linux_amd64")
	m := newTarget(t, "curl")
	if out, err := m.install("--uninstall", "--prefix", m.prefix()); err != nil || !strings.Contains(out, "is not installed") {
		t.Errorf("--uninstall of nothing: %v %s", err, out)
	}

	// sha256sum -b writes an asterisk before names.
	sums, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("SHA256SUMS", strings.ReplaceAll(string(sums), "  ", " *"))
	m.succeeds("Installed deckhand 1.0", "--from", r.dir)
	m.succeeds("Installed deckhand 1.0", "--from", r.serve())

	// A pipe could have other content each time it is read.
	name := filepath.Join(r.dir, "deckhand_1.0_linux_amd64.tar.gz")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		t.Fatal(err)
	}
	m.refuses("is not a file", "--from", r.dir)
	m.refuses("no deckhand_", "--from", "-x")
}
