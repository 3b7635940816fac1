package dockertest

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// SSH starts an SSH server on a port of 127.0.0.1, and puts an ssh into PATH that has a key for it and knows the key of
// the host. It returns USER@HOST:PORT. The server ends with the test.
func SSH(t *testing.T) string {
	t.Helper()
	server, client := "/usr/sbin/sshd", "/usr/bin/ssh"
	for _, program := range []string{server, client} {
		if _, err := os.Stat(program); err != nil {
			Missing(t, "there is no "+program+"; Debian has it in: openssh-server")
		}
	}
	if _, err := exec.LookPath("docker"); err != nil {
		Missing(t, "there is no docker client for docker system dial-stdio")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // what the service of the package creates
		if err := os.Mkdir("/run/sshd", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"host", "key"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	for name, text := range map[string]string{
		"sshd_config": "Port " + port + "\nListenAddress 127.0.0.1\nHostKey " + dir + "/host\nAuthorizedKeysFile " + dir + "/key.pub\n" +
			"StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n",
		"ssh_config":  "IdentityFile " + dir + "/key\nIdentitiesOnly yes\nGlobalKnownHostsFile none\nUserKnownHostsFile " + dir + "/known_hosts\n",
		"known_hosts": "[127.0.0.1]:" + port + " " + string(hostKey),
		"ssh":         "#!/bin/sh\nexec " + client + " -F " + dir + "/ssh_config \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run(t, exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "sshd_config")), "Server listening on")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return me.Username + "@127.0.0.1:" + port
}

// freePort is a port of 127.0.0.1 on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// run runs a program until the test ends. It is ready when it logs a line with the text.
func run(t *testing.T, cmd *exec.Cmd, ready string) {
	t.Helper()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan struct{}), make(chan struct{})
	var text strings.Builder
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			text.WriteString(lines.Text() + "\n")
			if ready != "" && strings.Contains(lines.Text(), ready) {
				ready = ""
				close(started)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", cmd.Path, text.String())
		}
	})
	select {
	case <-started:
	case <-ended:
		t.Fatalf("%s did not start: %s", cmd.Path, text.String())
	}
}
