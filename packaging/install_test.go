package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tools are the programs that install.sh may use, except those that download.
var tools = []string{
	"sh", "dirname", "basename", "id", "uname", "mktemp", "rm", "awk", "sha256sum", "mkdir", "tar", "gzip", "cp", "chmod", "mv", "cat", "env", "sleep",
}

// release is a folder with release files whose program is a script.
type release struct {
	t   *testing.T
	dir string
}

func newRelease(t *testing.T, version string, platforms ...string) release {
	t.Helper()
	r := release{t: t, dir: t.TempDir()}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms {
		r.archive(fmt.Sprintf("deckhand_%s_%s.tar.gz", version, p), fmt.Sprintf("#!/bin/sh\nif test \"$1\" = version; then echo deckhand %s %s; else exec sleep 60; fi\n", version, p))
	}
	r.sums()
	return r
}

func (r release) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// archive writes an archive with the files of a release.
func (r release) archive(name, program string) {
	r.t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, f := range []struct{ name, content string }{
		{"deckhand", program}, {"man/deckhand.1.gz", "1"}, {"man/deckhand-run.1.gz", "1"}, {"man/deckhand.yaml.5.gz", "5"},
		{"completion/deckhand.bash", "b"}, {"completion/deckhand.zsh", "z"}, {"completion/deckhand.fish", "f"},
		{"share/monitoring/alerts.yml", "a"}, {"share/sandbox-image", "s"},
	} {
		if err := w.WriteHeader(&tar.Header{Name: "./" + f.name, Mode: 0o755, Size: int64(len(f.content))}); err != nil {
			r.t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.write(name, out.String())
}

// sums writes SHA256SUMS.
func (r release) sums() {
	r.t.Helper()
	archives, err := filepath.Glob(filepath.Join(r.dir, "*.tar.gz"))
	if err != nil {
		r.t.Fatal(err)
	}
	var out strings.Builder
	for _, a := range archives {
		content, err := os.ReadFile(a)
		if err != nil {
			r.t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&out, "%s  %s\n", hex.EncodeToString(sum[:]), filepath.Base(a))
	}
	r.write("SHA256SUMS", out.String())
}

// serve serves the folder on loopback.
func (r release) serve() string {
	s := httptest.NewServer(http.FileServer(http.Dir(r.dir)))
	r.t.Cleanup(s.Close)
	return s.URL
}

// target is a machine with an empty prefix and only some programs.
type target struct {
	t            *testing.T
	bin, home    string
	system, arch string
}

func newTarget(t *testing.T, downloaders ...string) *target {
	t.Helper()
	m := &target{t: t, bin: t.TempDir(), home: t.TempDir(), system: "Linux", arch: "x86_64"}
	for _, name := range append(append([]string{}, tools...), downloaders...) {
		if name == "uname" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			if name == "wget" { // busybox has one
				path, err = exec.LookPath("busybox")
			}
			if err != nil {
				t.Skipf("SKIPPED: %s is not installed", name)
			}
		}
		if err := os.Symlink(path, filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// install runs install.sh and returns its output.
func (m *target) install(args ...string) (string, error) {
	m.t.Helper()
	uname := fmt.Sprintf("#!/bin/sh\ncase $1 in -s) echo %s ;; -m) echo %s ;; esac\n", m.system, m.arch)
	if err := os.WriteFile(filepath.Join(m.bin, "uname"), []byte(uname), 0o755); err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"install.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + m.bin, "HOME=" + m.home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// succeeds installs to the home of the target, and fails the test on an error.
func (m *target) succeeds(want string, args ...string) {
	m.t.Helper()
	if out, err := m.install(append(args, "--prefix", m.prefix())...); err != nil || !strings.Contains(out, want) {
		m.t.Fatalf("install.sh %v: %v\n%s\nwant %q", args, err, out, want)
	}
}

// refuses expects an error, and that nothing was installed.
func (m *target) refuses(want string, args ...string) {
	m.t.Helper()
	before := m.files()
	out, err := m.install(append(args, "--prefix", m.prefix())...)
	if err == nil || !strings.Contains(out, want) {
		m.t.Errorf("install.sh %v: %v\n%s\nwant an error with %q", args, err, out, want)
	}
	if after := m.files(); after != before {
		m.t.Errorf("install.sh %v changed files: %q, were %q", args, after, before)
	}
}

func (m *target) prefix() string { return filepath.Join(m.home, ".local") }

// files lists the installed files with the version of the program.
func (m *target) files() string {
	var all []string
	_ = filepath.WalkDir(m.prefix(), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(m.prefix(), path)
			all = append(all, rel)
		}
		return nil
	})
	cmd := exec.Command(filepath.Join(m.prefix(), "bin/deckhand"), "version")
	version, _ := cmd.Output()
	return strings.Join(all, " ") + " " + string(version)
}

const installed = "bin/deckhand share/bash-completion/completions/deckhand share/doc/deckhand/monitoring/alerts.yml share/doc/deckhand/sandbox-image share/fish/vendor_completions.d/deckhand.fish " +
	"share/man/man1/deckhand-run.1.gz share/man/man1/deckhand.1.gz share/man/man5/deckhand.yaml.5.gz share/zsh/site-functions/_deckhand "

var all = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}

func TestInstallFromAServer(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "1.0", all...)
	url := r.serve()
	for _, with := range []string{"curl", "wget"} {
		t.Run(with, func(t *testing.T) {
			m := newTarget(t, with)
			m.succeeds("Installed deckhand 1.0 linux_amd64 as "+m.prefix()+"/bin/deckhand.", "--from", url+"/")
			if got := m.files(); got != installed+"deckhand 1.0 linux_amd64\n" {
				t.Errorf("installed %q", got)
			}
			m.succeeds("Removed Deckhand", "--uninstall")
			if got := m.files(); got != " " {
				t.Errorf("left after --uninstall: %q", got)
			}
			m.refuses("cannot download", "--from", url+"/elsewhere")
		})
	}
	newTarget(t).refuses("curl or wget is needed", "--from", url)
	newTarget(t).succeeds("Installed deckhand 1.0", "--from", r.dir) // needs neither
}

func TestInstallChoosesThePlatform(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "1.0", all...)
	url := r.serve()
	for uname, want := range map[[2]string]string{
		{"Linux", "x86_64"}: "linux_amd64", {"Linux", "aarch64"}: "linux_arm64", {"Darwin", "x86_64"}: "darwin_amd64", {"Darwin", "arm64"}: "darwin_arm64",
	} {
		for _, from := range []string{r.dir, url} {
			m := newTarget(t, "curl")
			m.system, m.arch = uname[0], uname[1]
			m.succeeds("Installed deckhand 1.0 "+want, "--from", from)
		}
	}
	m := newTarget(t, "curl")
	m.system = "SunOS"
	m.refuses("unsupported operating system: SunOS", "--from", url)
	m.system, m.arch = "Linux", "riscv64"
	m.refuses("unsupported architecture: riscv64", "--from", url)
	only := newRelease(t, "1.0", "linux_arm64")
	m.arch = "x86_64"
	m.refuses("no archive for linux_amd64", "--from", only.serve())
	m.refuses("no deckhand_*_linux_amd64.tar.gz in", "--from", only.dir)
	r.archive("deckhand_2.0_linux_amd64.tar.gz", "")
	r.sums()
	m.refuses("several archives", "--from", url)
	m.refuses("several archives", "--from", r.dir)
}

func TestInstallVerifies(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "1.0", all...)
	url := r.serve()
	good, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "trusted")
	if err := os.WriteFile(trusted, good, 0o644); err != nil {
		t.Fatal(err)
	}
	m := newTarget(t, "curl")
	m.succeeds("Installed deckhand 1.0", "--from", url)
	for _, other := range []string{
		strings.ReplaceAll(string(good), "\n", "\r\n"),
		strings.ReplaceAll(string(good), "  ", "  ./"),
		strings.ReplaceAll(string(good), "  ", " *"),
		upperSums(string(good)), string(good) + string(good),
	} {
		r.write("SHA256SUMS", other)
		m.succeeds("Installed deckhand 1.0", "--from", url)
		m.succeeds("Installed deckhand 1.0", "--from", r.dir)
	}
	r.write("SHA256SUMS", string(good)+strings.ReplaceAll(string(good), "  ", "0  "))
	m.refuses("has no valid checksum for it, or several", "--from", r.dir)
	r.write("SHA256SUMS", string(good))

	// Somebody replaces the archive, then also the checksums: a trusted copy of those still finds it.
	r.archive("deckhand_1.0_linux_amd64.tar.gz", "#!/bin/sh\necho replaced\n")
	for _, from := range []string{r.dir, url} {
		m.refuses("checksum mismatch for deckhand_1.0_linux_amd64.tar.gz", "--from", from)
	}
	r.sums()
	for _, from := range []string{r.dir, url} {
		m.refuses("checksum mismatch", "--from", from, "--sums", trusted)
	}
	r.write("SHA256SUMS", "")
	m.refuses("no checksum for it", "--from", r.dir)
	if err := os.Remove(filepath.Join(r.dir, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	m.refuses("no SHA256SUMS in", "--from", r.dir)
	m.refuses("cannot download "+url+"/SHA256SUMS", "--from", url)
	m.refuses("cannot read", "--from", r.dir, "--sums", trusted+"-missing")
	m.refuses("is not encrypted", "--from", "http://example.invalid/deckhand")
	m.refuses("unknown option --form", "--form", r.dir)
}

// upperSums has the checksums in capitals.
func upperSums(sums string) string {
	var out strings.Builder
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(line, " ")
		out.WriteString(strings.ToUpper(sum) + " " + name)
	}
	return out.String()
}

// A running program keeps the file that it was started from. A new program that does not start does not replace it.
func TestInstallUpgrades(t *testing.T) {
	t.Parallel()
	m := newTarget(t, "curl")
	m.succeeds("Installed deckhand 1.0", "--from", newRelease(t, "1.0", "linux_amd64").dir)
	path := filepath.Join(m.prefix(), "bin/deckhand")
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	m.succeeds("Installed deckhand 2.0", "--from", newRelease(t, "2.0", "linux_amd64").serve())
	if got := m.files(); got != installed+"deckhand 2.0 linux_amd64\n" {
		t.Errorf("after an upgrade: %q", got)
	}
	now, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := old.Stat(); err != nil || os.SameFile(was, now) {
		t.Error("the program was overwritten in place")
	}
	broken := newRelease(t, "3.0", "linux_amd64")
	broken.archive("deckhand_3.0_linux_amd64.tar.gz", "#!/bin/sh\nexit 1\n")
	broken.sums()
	m.refuses("does not run on this machine", "--from", broken.dir)
}

func TestInstallWithoutRoot(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "1.0", "linux_amd64")
	m := newTarget(t)
	if _, err := m.install("--help"); err != nil { // writes uname
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-s", "--", "--from", r.dir)
	cmd.Env = []string{"PATH=" + m.bin, "HOME=" + m.home}
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := os.Chmod(filepath.Dir(m.home), 0o755); err != nil { // the folder of all temporary folders of this test
			t.Fatal(err)
		}
		if err := os.Chown(m.home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	script, err := os.Open("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd.Stdin = script // as with: curl … | sh
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Add it to your PATH") {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := m.files(); got != installed+"deckhand 1.0 linux_amd64\n" {
		t.Errorf("installed %q", got)
	}
}
