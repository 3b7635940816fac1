package egress_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/proxyenv"
	"deckhand/internal/soak"
)

// shell runs programs as they run in a sandbox: with the proxy's variables and
// nothing else of this machine's configuration.
type shell struct {
	*world
	dir string
	env []string
}

// newShell has the origins as http and as https, the latter under the one name
// that a test server's certificate has.
func newShell(t *testing.T, program string, h http.HandlerFunc) (s *shell, urls []string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		skip(t, program+" is not installed")
	}
	plain, secure := newOrigin(t, h), newTLSOrigin(t, h)
	urls = []string{plain.at("plain.test"), secure.at("example.com")}
	s = &shell{world: newWorld(t, list(near(urls...)...), near(urls...)), dir: t.TempDir()}
	ca := filepath.Join(s.dir, "ca.pem")
	s.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	_, portText, _ := net.SplitHostPort(s.addr)
	port, _ := strconv.Atoi(portText)
	s.env = append(proxyenv.Variables(port),
		"PATH="+os.Getenv("PATH"), "HOME="+s.dir, "LANG=C", "CURL_CA_BUNDLE="+ca, "SSL_CERT_FILE="+ca, "GIT_SSL_CAINFO="+ca, "PIP_CERT="+ca, "NODE_EXTRA_CA_CERTS="+ca,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "PIP_CONFIG_FILE=/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_CACHE_DIR=1", "PIP_ROOT_USER_ACTION=ignore")
	return s, urls
}

func (s *shell) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	return path
}

// try runs a program to its end.
func (s *shell) try(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *shell) run(name string, args ...string) string {
	s.Helper()
	out, err := s.try(name, args...)
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// went checks that what was done went through the proxy, both ways.
func (s *shell) went() {
	s.Helper()
	hosts := map[string]string{}
	for _, e := range s.entries() {
		if e.Verdict == egress.Allowed && e.Sent > 0 && e.Received > 0 {
			hosts[e.Host] = e.Method
		}
	}
	if hosts["plain.test"] == "" || hosts["plain.test"] == "CONNECT" || hosts["example.com"] != "CONNECT" {
		s.Errorf("recorded: %v", hosts)
	}
}

func TestCurl(t *testing.T) {
	s, urls := newShell(t, "curl", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			echo(w, r)
			return
		}
		hello(w, r)
	})
	for _, url := range urls {
		if got := s.run("curl", "-sS", url); got != "hello" {
			t.Errorf("%s: got %q", url, got)
		}
		big := s.write("big", strings.Repeat("0123456789", 300_000))
		if got := s.run("curl", "-sS", "-T", big, "-X", "POST", url); len(got) != 3_000_000 {
			t.Errorf("%s: got %d bytes back", url, len(got))
		}
	}
	s.settle()
	s.went()
	// What a person in the shell sees.
	has(t, s.run("curl", "-sS", "http://elsewhere.test/"), `deckhand: egress policy "allowlist" does not allow elsewhere.test; `)
	out, err := s.try("curl", "-sSv", "https://elsewhere.test/")
	if err == nil {
		t.Error("curl succeeds")
	}
	has(t, out, `403 deckhand: egress policy "allowlist" does not allow elsewhere.test; `)
	// Its own machine is reached without the proxy.
	o := newOrigin(t, hello)
	if got := s.run("curl", "-sS", o.URL); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestWget(t *testing.T) {
	s, urls := newShell(t, "wget", hello)
	for _, url := range urls {
		if got := s.run("wget", "-q", "-O", "-", "--ca-certificate=ca.pem", url); got != "hello" {
			t.Errorf("%s: got %q", url, got)
		}
	}
	s.settle()
	s.went()
}

func TestGit(t *testing.T) {
	backend, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		skip(t, "git is not installed")
	}
	program := filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		skip(t, "git has no http-backend")
	}
	root := t.TempDir()
	s, urls := newShell(t, "git", func(w http.ResponseWriter, r *http.Request) {
		h := cgi.Handler{Path: program, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=maria", "HOME=" + root}}
		h.ServeHTTP(w, r)
	})
	me := []string{"-c", "user.name=Maria", "-c", "user.email=maria@example.com", "-c", "safe.directory=*"}
	git := func(args ...string) string { return s.run("git", append(me[:len(me):len(me)], args...)...) }
	repo := filepath.Join(root, "repo.git")
	git("init", "-q", "--bare", "-b", "main", repo)
	git("-C", repo, "config", "http.receivepack", "true")
	git("init", "-q", "-b", "main", "first")
	s.write("first/file", strings.Repeat("line\n", 200_000))
	git("-C", "first", "add", ".")
	git("-C", "first", "commit", "-q", "-m", "first")
	for i, url := range urls {
		git("-C", "first", "push", "-q", url+"/repo.git", "main")
		to := fmt.Sprint("clone", i)
		git("clone", "-q", url+"/repo.git", to)
		if got, err := os.ReadFile(filepath.Join(s.dir, to, "file")); err != nil || len(got) != 1_000_000 {
			t.Errorf("%s: got %d bytes, %v", url, len(got), err)
		}
	}
	s.settle()
	s.went()
	if out, err := s.try("git", "clone", "http://elsewhere.test/repo.git"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestGoModules(t *testing.T) {
	const mod = "module example.com/pkg\n\ngo 1.20\n"
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"go.mod": mod, "pkg.go": "package pkg\n"} {
		f, _ := z.Create("example.com/pkg@v1.0.0/" + name)
		f.Write([]byte(text))
	}
	z.Close()
	s, urls := newShell(t, "go", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/example.com/pkg/@v/v1.0.0.info":
			fmt.Fprint(w, `{"Version":"v1.0.0","Time":"2026-03-01T12:00:00Z"}`)
		case "/example.com/pkg/@v/v1.0.0.mod":
			fmt.Fprint(w, mod)
		case "/example.com/pkg/@v/v1.0.0.zip":
			w.Write(archive.Bytes())
		default:
			http.NotFound(w, r)
		}
	})
	s.env = append(s.env, "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "GOENV=off")
	// Counting what go does goes on in a process of its own, after the test.
	telemetry := filepath.Join(s.dir, ".config", "go", "telemetry")
	if err := errors.Join(os.MkdirAll(telemetry, 0o700), os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.write("go.mod", "module m\n\ngo 1.20\n")
	for i, url := range urls {
		s.env = append(s.env, "GOPROXY="+url, "GOMODCACHE="+filepath.Join(s.dir, fmt.Sprint("cache", i)))
		has(t, s.run("go", "mod", "download", "-json", "example.com/pkg@v1.0.0"), `"Version": "v1.0.0"`)
	}
	s.settle()
	s.went()
}

func TestPip(t *testing.T) {
	soak.NotShort(t, "starts foreign programs")
	const wheel = "tiny-1.0-py3-none-any.whl"
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{
		"tiny.py": "x = 1\n", "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		"tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "tiny-1.0.dist-info/RECORD": "",
	} {
		f, _ := z.Create(name)
		f.Write([]byte(text))
	}
	z.Close()
	s, urls := newShell(t, "python3", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") {
			w.Write(archive.Bytes())
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><a href="/%s#sha256=%x">%s</a>`, wheel, sha256.Sum256(archive.Bytes()), wheel)
	})
	// The interpreter itself, not what a version manager puts before it.
	real, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	python := strings.TrimSpace(string(real))
	if err != nil {
		skip(t, "python3 does not run here")
	}
	if out, err := s.try(python, "-m", "pip", "--version"); err != nil {
		skip(t, "pip does not run here: "+out)
	}
	for i, url := range urls {
		to := filepath.Join(s.dir, fmt.Sprint("target", i))
		s.run(python, "-m", "pip", "install", "-q", "--target", to, "--index-url", url+"/simple", "--trusted-host", "plain.test", "tiny")
		if _, err := os.Stat(filepath.Join(to, "tiny.py")); err != nil {
			t.Error(err)
		}
	}
	s.settle()
	s.went()
	out, err := s.try(python, "-m", "pip", "download", "--retries", "1", "--index-url", "https://elsewhere.test/simple", "tiny")
	if err == nil {
		t.Error("pip succeeds")
	}
	has(t, out, `403 deckhand: egress policy "allowlist" does not allow elsewhere.test`)
}

func TestNpm(t *testing.T) {
	soak.NotShort(t, "starts foreign programs")
	var archive bytes.Buffer
	gz := gzip.NewWriter(&archive)
	tw := tar.NewWriter(gz)
	manifest := `{"name":"tiny","version":"1.0.0"}`
	tw.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(manifest))})
	tw.Write([]byte(manifest))
	tw.Close()
	gz.Close()
	s, urls := newShell(t, "npm", func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		switch r.URL.Path {
		case "/tiny":
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"name": "tiny", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{
				"1.0.0": map[string]any{"name": "tiny", "version": "1.0.0", "dist": map[string]string{"tarball": scheme + "://" + r.Host + "/tiny.tgz"}},
			}})
		case "/tiny.tgz":
			w.Write(archive.Bytes())
		default:
			http.NotFound(w, r)
		}
	})
	for i, url := range urls {
		to := fmt.Sprint("project", i)
		s.write(to+"/package.json", `{"name":"x","version":"1.0.0"}`)
		s.run("npm", "--prefix", filepath.Join(s.dir, to), "install", "--registry", url, "--cafile", filepath.Join(s.dir, "ca.pem"),
			"--no-audit", "--no-fund", "--no-update-notifier", "--cache", filepath.Join(s.dir, "cache"+to), "tiny")
		if _, err := os.Stat(filepath.Join(s.dir, to, "node_modules/tiny/package.json")); err != nil {
			t.Error(err)
		}
	}
	s.settle()
	s.went()
}

func TestApt(t *testing.T) {
	soak.NotShort(t, "starts foreign programs")
	for _, program := range []string{"dpkg-deb", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, program+" is not installed")
		}
	}
	files := map[string][]byte{}
	s, urls := newShell(t, "apt-get", func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[path.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(body)
	})
	arch := strings.TrimSpace(s.run("dpkg", "--print-architecture"))
	control := "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: Maria <maria@example.com>\nDescription: tiny\n"
	s.write("deb/DEBIAN/control", control)
	s.run("dpkg-deb", "-b", "deb", "tiny.deb")
	deb, err := os.ReadFile(filepath.Join(s.dir, "tiny.deb"))
	if err != nil {
		t.Fatal(err)
	}
	files["tiny.deb"] = deb
	files["Packages"] = fmt.Appendf(nil, "%sFilename: ./tiny.deb\nSize: %d\nSHA256: %x\n\n", control, len(deb), sha256.Sum256(deb))
	for i, url := range urls {
		root := fmt.Sprint("apt", i)
		for _, dir := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/trusted.gpg.d", "state/lists/partial", "cache/archives/partial"} {
			if err := os.MkdirAll(filepath.Join(s.dir, root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s.write(root+"/etc/sources.list", "deb [trusted=yes] "+url+" ./\n")
		s.write(root+"/status", "")
		at := filepath.Join(s.dir, root)
		s.env = append(s.env, "APT_CONFIG="+s.write(root+"/apt.conf", fmt.Sprintf(
			"Dir::Etc %q; Dir::State %q; Dir::State::status %q; Dir::Cache %q; APT::Sandbox::User \"\"; APT::Architecture %q; Acquire::https::CAInfo %q; Acquire::Languages \"none\";\n",
			at+"/etc/", at+"/state/", at+"/status", at+"/cache/", arch, s.dir+"/ca.pem")))
		s.run("apt-get", "update")
		s.run("apt-get", "download", "tiny")
		if got, err := filepath.Glob(filepath.Join(s.dir, "tiny_1.0_*.deb")); err != nil || len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		} else {
			os.Remove(got[0])
		}
	}
	s.settle()
	s.went()
}
