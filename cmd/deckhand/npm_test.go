package main

import (
	"bufio"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/npmtest"
)

// copyModules puts the servers where a sandbox can see them. What only people
// read is left out.
func copyModules(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular(), strings.HasSuffix(path, ".map"), strings.HasSuffix(path, ".ts"), strings.HasSuffix(path, ".md"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// npmSite starts the server of everything at an address of its own.
func npmSite(t *testing.T, modules, mode string) string {
	t.Helper()
	for range 5 {
		if address := tryNpmSite(t, modules, mode); address != "" {
			return "http://" + address
		}
	}
	t.Fatal("the tool server never listened")
	return ""
}

// tryNpmSite returns "" if another program took the port, which the server can only be told by number,
// and which it does not notice: it says that it listens all the same.
func tryNpmSite(t *testing.T, modules, mode string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", npmtest.Program(modules, npmtest.Everything), mode)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), append(os.Environ(), "PORT="+port), out, out
	err = cmd.Start()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	up, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		said := false
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if text := lines.Text(); !said && strings.Contains(text, port) {
				said = true
				close(up)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-gone
		in.Close()
	})
	select {
	case <-up:
	case <-gone:
		return ""
	}
	r, err := http.Get("http://" + address + "/nothing")
	if err != nil {
		return ""
	}
	r.Body.Close()
	if r.Header.Get("X-Powered-By") != "Express" {
		return ""
	}
	return address
}
