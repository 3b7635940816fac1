package socketproxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/docker/socketproxy"
	"deckhand/internal/sandbox/sandboxtest"
)

// proxied starts a proxy in front of the engine and returns its socket.
func proxied(t *testing.T) string {
	t.Helper()
	engine, ok := strings.CutPrefix(dockertest.Engine(t), "unix://")
	if !ok {
		dockertest.Missing(t, "the engine is not reached by a unix socket")
	}
	p, err := socketproxy.New(engine, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// The driver works behind the proxy as it does with the engine.
func TestDriver(t *testing.T) {
	d, err := docker.New(docker.Options{
		Host: "unix://" + proxied(t), Runner: sandboxtest.Runner(t), Image: dockertest.BusyboxImage(t),
		Prefix: "deckhand-test", Instance: "test-" + rand.Text(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	id, copied := "t_"+rand.Text()[:12], "t_"+rand.Text()[:12]
	for _, id := range []string{id, copied} {
		defer d.Destroy(context.Background(), sandbox.Handle{ID: id})
	}
	run := func(box *sandbox.Sandbox, script, want string) {
		t.Helper()
		got, err := box.Run(t.Context(), sandbox.Process{Args: []string{"/bin/sh", "-c", script}}, nil)
		if err != nil || string(got.Stdout) != want {
			t.Fatalf("%s: %q %q, %v; want %q", script, got.Stdout, got.Stderr, err, want)
		}
	}
	box, h, err := sandbox.Open(t.Context(), d, sandbox.Spec{ID: id, Seal: make([]byte, 32)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run(box, "echo kept > file; cat file", "kept\n")
	if _, err := d.Checkpoint(t.Context(), h); err != nil {
		t.Errorf("checkpoint: %v", err)
	}
	run(box, "echo changed > file; cat file", "changed\n")
	if list, err := d.Checkpoints(t.Context(), h); err != nil || len(list.Numbers) == 0 {
		t.Errorf("checkpoints: %v, %v", list, err)
	} else if _, err := d.Restore(t.Context(), h, sandbox.RestoreParams{Number: list.Numbers[len(list.Numbers)-1]}); err != nil {
		t.Errorf("restore: %v", err)
	}
	run(box, "cat file", "kept\n")
	box.Close()
	if err := d.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	box, _, err = sandbox.Open(t.Context(), d, sandbox.Spec{ID: id, Seal: make([]byte, 32), Limits: sandbox.Limits{Memory: 64 << 20}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run(box, "cat file", "kept\n")
	box.Close()
	if err := d.Snapshot(t.Context(), h, copied); err != nil {
		t.Errorf("snapshot: %v", err)
	}
	if found, err := d.List(t.Context()); err != nil || len(found) != 2 {
		t.Errorf("list: %v, %v", found, err)
	}
}

// What would leave the sandbox is refused, whoever asks.
func TestRefused(t *testing.T) {
	socket := proxied(t)
	engine := dockertest.Client(t)
	image := dockertest.BusyboxImage(t)
	foreign, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{Image: image}, HostConfig: &container.HostConfig{NetworkMode: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = engine.ContainerRemove(context.Background(), foreign.ID, client.ContainerRemoveOptions{Force: true})
	})
	if _, err := engine.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: "other-" + foreign.ID[:8]}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = engine.VolumeRemove(context.Background(), "other-"+foreign.ID[:8], client.VolumeRemoveOptions{})
	})
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	ask := func(method, path string, body any) (int, string) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := body.(string); ok {
			raw = []byte(text)
		}
		req, err := http.NewRequest(method, "http://engine/v1.41"+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		got, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		said, _ := io.ReadAll(got.Body)
		return got.StatusCode, string(said)
	}
	type m = map[string]any
	// good is a container that is allowed; a change makes it one that is not.
	good := func(change func(config, host m)) m {
		host := m{"NetworkMode": "none", "CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"}, "MaskedPaths": docker.Masked, "Memory": 64 << 20, "MemorySwap": 64 << 20, "PidsLimit": 16}
		config := m{"Image": image, "Labels": m{"deckhand": "1", "deckhand.instance": "refused"}, "HostConfig": host}
		change(config, host)
		return config
	}
	name := "deckhand-refused-" + rand.Text()
	t.Cleanup(func() {
		_, _ = engine.ContainerRemove(context.Background(), name, client.ContainerRemoveOptions{Force: true})
	})
	if status, said := ask("POST", "/containers/create?name="+name, good(func(m, m) {})); status != http.StatusCreated {
		t.Fatalf("a plain container: %d %s", status, said)
	}
	for what, change := range map[string]func(config, host m){
		"NetworkMode":     func(_, h m) { h["NetworkMode"] = "host" },
		"no network mode": func(_, h m) { delete(h, "NetworkMode") },
		"Privileged":      func(_, h m) { h["Privileged"] = true },
		"other spelling":  func(_, h m) { h["privileged"] = true },
		"Binds":           func(_, h m) { h["Binds"] = []string{"/:/host"} },
		"bind mount":      func(_, h m) { h["Mounts"] = []m{{"Type": "bind", "Source": "/", "Target": "/host"}} },
		"foreign volume":  func(_, h m) { h["Mounts"] = []m{{"Type": "volume", "Source": "secrets", "Target": "/x"}} },
		"volume by path":  func(_, h m) { h["Mounts"] = []m{{"Type": "volume", "Source": "/etc", "Target": "/x"}} },
		"volume options": func(_, h m) {
			h["Mounts"] = []m{{"Type": "volume", "Source": "deckhand-x", "Target": "/x", "VolumeOptions": m{"DriverConfig": m{"Name": "local", "Options": m{"type": "none", "o": "bind", "device": "/"}}}}}
		},
		"CapAdd":        func(_, h m) { h["CapAdd"] = []string{"SYS_ADMIN"} },
		"no CapDrop":    func(_, h m) { delete(h, "CapDrop") },
		"seccomp":       func(_, h m) { h["SecurityOpt"] = []string{"no-new-privileges", "seccomp=unconfined"} },
		"masked paths":  func(_, h m) { h["MaskedPaths"] = []string{} },
		"read-only":     func(_, h m) { h["ReadonlyPaths"] = []string{"/x"} },
		"Devices":       func(_, h m) { h["Devices"] = []m{{"PathOnHost": "/dev/sda", "PathInContainer": "/dev/sda"}} },
		"PidMode":       func(_, h m) { h["PidMode"] = "host" },
		"IpcMode":       func(_, h m) { h["IpcMode"] = "host" },
		"UsernsMode":    func(_, h m) { h["UsernsMode"] = "host" },
		"CgroupParent":  func(_, h m) { h["CgroupParent"] = "/" },
		"Runtime":       func(_, h m) { h["Runtime"] = "other" },
		"VolumesFrom":   func(_, h m) { h["VolumesFrom"] = []string{foreign.ID} },
		"PortBindings":  func(_, h m) { h["PortBindings"] = m{"80/tcp": []m{{"HostPort": "80"}}} },
		"OomScoreAdj":   func(_, h m) { h["OomScoreAdj"] = -1000 },
		"Sysctls":       func(_, h m) { h["Sysctls"] = m{"kernel.shmmax": "1"} },
		"log driver":    func(_, h m) { h["LogConfig"] = m{"Type": "syslog", "Config": m{}} },
		"no label":      func(c, _ m) { c["Labels"] = m{} },
		"network":       func(c, _ m) { c["NetworkingConfig"] = m{"EndpointsConfig": m{"bridge": m{}}} },
		"no HostConfig": func(c, _ m) { delete(c, "HostConfig") },
	} {
		if status, said := ask("POST", "/containers/create?name="+name+"-2", good(change)); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", what, status, said)
		}
	}
	// The engine must read what the proxy has checked, in a body with the same field twice too.
	twice := strings.Replace(string(must(t, good(func(m, m) {}))), `"HostConfig":{`, `"HostConfig":{"Privileged":true,"privileged":false,`, 1)
	if status, said := ask("POST", "/containers/create?name="+name+"-3", twice); status == http.StatusCreated {
		got, err := engine.ContainerInspect(t.Context(), name+"-3", client.ContainerInspectOptions{})
		if err != nil || got.Container.HostConfig.Privileged {
			t.Errorf("a field in two spellings: %v %s", err, said)
		}
		_, _ = engine.ContainerRemove(t.Context(), name+"-3", client.ContainerRemoveOptions{Force: true})
	}
	for _, r := range []struct {
		request string
		body    any
	}{
		{"POST /containers/create?name=other", good(func(m, m) {})},
		{"POST /containers/create", good(func(m, m) {})},
		{"GET /containers/" + foreign.ID + "/json", nil},
		{"GET /containers/" + foreign.ID[:12] + "/archive?path=/etc/passwd", nil},
		{"POST /containers/" + foreign.ID + "/start", nil},
		{"DELETE /containers/" + foreign.ID + "?force=1", nil},
		{"POST /containers/" + foreign.ID + "/exec", m{"Cmd": []string{"id"}}},
		{"POST /containers/" + name + "/exec", m{"Cmd": []string{"id"}, "Privileged": true}},
		{"POST /containers/" + name + "/update", m{"Devices": []m{{"PathOnHost": "/dev/sda"}}}},
		{"POST /containers/" + name + "/attach", nil},
		{"GET /containers/" + name + "/export", nil},
		{"POST /containers/" + name + "/rename?name=x", nil},
		{"GET /containers/json?all=1", nil},
		{"GET /containers/json?all=1&filters=%7B%22label%22%3A%7B%22other%22%3Atrue%7D%7D", nil},
		{"GET /containers/%2e%2e/json", nil},
		{"GET /containers/x/../../secrets", nil},
		{"GET /volumes", nil},
		{"GET /volumes/other-" + foreign.ID[:8], nil},
		{"DELETE /volumes/other-" + foreign.ID[:8], nil},
		{"POST /volumes/create", m{"Name": "deckhand-x", "Labels": m{"deckhand": "1"}, "DriverOpts": m{"type": "none", "o": "bind", "device": "/"}}},
		{"POST /volumes/create", m{"Name": "deckhand-x", "Labels": m{"deckhand": "1"}, "Driver": "nfs"}},
		{"POST /volumes/create", m{"Name": "x", "Labels": m{"deckhand": "1"}}},
		{"POST /volumes/create", "no JSON"},
		{"POST /images/create?fromSrc=-", nil},
		{"POST /images/create?fromImage=x&fromSrc=http://127.0.0.1/", nil},
		{"POST /build", nil}, {"POST /images/load", nil}, {"DELETE /images/" + image, nil}, {"POST /commit?container=" + name, nil},
		{"GET /networks", nil}, {"POST /networks/create", m{}}, {"GET /secrets", nil}, {"POST /plugins/pull", nil}, {"POST /swarm/init", m{}},
		{"GET /events", nil}, {"POST /session", nil}, {"POST /grpc", nil}, {"GET /system/df", nil}, {"POST /auth", m{}},
	} {
		method, path, _ := strings.Cut(r.request, " ")
		if status, said := ask(method, path, r.body); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", r.request, status, said)
		}
	}
}

func must(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
