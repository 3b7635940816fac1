package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

// Real tool servers, in the versions that all tests of them have.
const (
	npmEverything = "@modelcontextprotocol/server-everything"
	npmFilesystem = "@modelcontextprotocol/server-filesystem"
	npmVersion    = "2026.8.31"
)

// npmServers is the folder with the real tool servers. They are installed once
// for all tests on this machine; who comes while another installs them waits.
func npmServers(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: real tool servers are left out of the short round")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			dockertest.Missing(t, program+" is not installed, so real tool servers cannot be tried: install Node.js 20 or newer")
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		dockertest.Missing(t, "there is no cache folder to install tool servers into: "+err.Error())
	}
	dir := filepath.Join(cache, "deckhand-test", "mcp-"+npmVersion)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, "node_modules")
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), "half-") // half of an installation must not be taken for a whole one
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(half)
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", half, npmEverything+"@"+npmVersion, npmFilesystem+"@"+npmVersion)
	if words, err := install.CombinedOutput(); err != nil {
		dockertest.Missing(t, fmt.Sprintf("npm cannot install tool servers: %v\n%s", err, words))
	}
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules")
}

// npmProgram is the program of a server below a folder of modules.
func npmProgram(modules, pkg string) string { return filepath.Join(modules, pkg, "dist", "index.js") }

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
	cmd := exec.Command("node", npmProgram(modules, npmEverything), mode)
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
			if !said && strings.Contains(lines.Text(), port) {
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
		t.Fatal("the tool server ended before it listened")
	}
	return "http://" + address
}
