package connect

import (
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"deckhand/internal/sandbox/docker/dockertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		t.Setenv(name, "")
	}
}

func TestAddresses(t *testing.T) {
	clean(t)
	for host, want := range map[string]Engine{
		"":                                    {Address: client.DefaultDockerHost, Local: true},
		"unix:///run/user/7/docker.sock":      {Address: "unix:///run/user/7/docker.sock", Local: true},
		"tcp://127.0.0.1:1":                   {Address: "tcp://127.0.0.1:1", Plain: true},
		"ssh://me@example.org:22":             {Address: "ssh://me@example.org:22"},
		"ssh://example.org/run/user/7/d.sock": {Address: "ssh://example.org/run/user/7/d.sock"},
	} {
		got, err := Open(host)
		if err != nil || got.Address != want.Address || got.Local != want.Local || got.Plain != want.Plain {
			t.Errorf("%q: got %+v, %v; want %+v", host, got, err, want)
		}
	}
	const form = "the address must be unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST"
	for host, want := range map[string]string{
		"ssh://":                      "must be ssh://USER@HOST",
		"ssh://me:secret@example.org": "without a password",
		"ssh://-oProxyCommand=x/":     "not a host or user name",
		"ssh://-l@example.org":        "not a host or user name",
		"ssh://example.org/a;b":       "not allowed",
		"nonsense":                    form,
		"unix://":                     form,
		"unix:///":                    form,
		"unix:/run/x":                 form,
		"tcp://127.0.0.1":             form,
		"tcp://:2375":                 form,
		"tcp://me:secret@127.0.0.1:1": form,
		"ssh://me:secret@exa mple":    form,
	} {
		if _, err := Open(host); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error with %q", host, err, want)
		}
	}
	t.Setenv("DOCKER_HOST", "ssh://from-the-environment")
	if got, err := Open(""); err != nil || got.Address != "ssh://from-the-environment" {
		t.Errorf("got %+v, %v", got, err)
	}
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	if _, err := Open("tcp://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "DOCKER_CERT_PATH") {
		t.Errorf("TLS without certificates: %v", err)
	}
}

func TestMasked(t *testing.T) {
	for host, want := range map[string]string{
		"ssh://root:p@w@127.0.0.1": "ssh://root:xxxxx@127.0.0.1",
		"tcp://u:pw@127.0.0.1:1":   "tcp://u:xxxxx@127.0.0.1:1",
		"ssh://root@127.0.0.1":     "ssh://root@127.0.0.1",
		"unix:///run/docker.sock":  "unix:///run/docker.sock",
	} {
		if got := Masked(host); got != want {
			t.Errorf("%s is shown as %s, want %s", host, got, want)
		}
	}
}

// An engine over SSH is reached by a real SSH server and the real docker system dial-stdio.
func TestSSH(t *testing.T) {
	socket := strings.TrimPrefix(dockertest.Engine(t), "unix://")
	clean(t)
	login := dockertest.SSH(t)
	_, host, _ := strings.Cut(login, "@")
	ping := func(address string) error {
		t.Helper()
		e, err := Open(address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		return err
	}
	for _, address := range []string{"ssh://" + login + socket, "ssh://" + host + socket} {
		if err := ping(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, want := range map[string]string{
		"ssh://nobody-here@" + host:                                    "Permission denied (publickey)",
		"ssh://" + strings.Replace(login, "127.0.0.1", "localhost", 1): "Host key verification failed",
		"ssh://" + login + "/nowhere.sock":                             "/nowhere.sock",
	} {
		if err := ping(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, wanted an error with %q", address, err, want)
		}
	}
}
