package packaging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox/docker/dockertest"
)

// TestContainerImage runs the image with the options of compose.proxy.yaml: a first task in a docker sandbox, a restart, and an upgrade that keeps
// the volume.
func TestContainerImage(t *testing.T) {
	before, after := releases(t)
	c := &containers{t: t, socket: strings.TrimPrefix(dockertest.Engine(t), "unix://"), sandbox: dockertest.BusyboxImage(t)}
	c.name = "dh" + strconv.Itoa(os.Getpid())
	c.docker("load", "-i", before.image)
	c.docker("load", "-i", after.image)
	t.Cleanup(c.clear)

	c.start("deckhand:0.1")
	c.inspectImage("deckhand:0.2")
	c.send("POST", "/api/settings", map[string]any{"llm_model": "scripted/demo"})
	var made struct {
		ID string `json:"conversation_id"`
	}
	if err := json.Unmarshal(c.send("POST", "/api/conversations", map[string]any{"initial_user_msg": "$ echo kept > file; id -u; cat file"}), &made); err != nil {
		t.Fatal(err)
	}
	c.finished(made.ID, 1, `0\nkept\n`)

	c.docker("restart", c.name)
	c.healthy()
	c.send("POST", "/api/conversations/"+made.ID+"/message", map[string]any{"message": "$ echo again $(cat file)"})
	c.finished(made.ID, 2, `again kept\n`)

	c.docker("rm", "-f", c.name, c.name+"-proxy")
	c.start("deckhand:0.2")
	if got := c.docker("exec", c.name, "/usr/bin/deckhand", "version"); !strings.Contains(got, "0.2") {
		t.Errorf("the version after the upgrade is %s", got)
	}
	c.send("POST", "/api/conversations/"+made.ID+"/message", map[string]any{"message": "$ echo upgraded $(cat file)"})
	c.finished(made.ID, 3, `upgraded kept\n`)
	c.send("DELETE", "/api/conversations/"+made.ID, nil)
}

// TestSandboxImage runs a conversation in the image that scripts/sandbox-image builds: the usual tools work, as a user that is not root.
// DECKHAND_SANDBOX_IMAGE is the name of the image.
func TestSandboxImage(t *testing.T) {
	_, after := releases(t)
	c := &containers{t: t, socket: strings.TrimPrefix(dockertest.Engine(t), "unix://"), sandbox: os.Getenv("DECKHAND_SANDBOX_IMAGE")}
	if c.sandbox == "" {
		dockertest.Missing(t, "there is no image for sandboxes; scripts/sandbox-image builds it")
	}
	c.name = "dhs" + strconv.Itoa(os.Getpid())
	c.docker("load", "-i", after.image)
	t.Cleanup(c.clear)
	c.start("deckhand:0.2")
	c.send("POST", "/api/settings", map[string]any{"llm_model": "scripted/demo"})
	var made struct {
		ID string `json:"conversation_id"`
	}
	// Without pip, because the model of this test does not wait for a command that prints nothing for ten seconds.
	task := "$ " + strings.Join([]string{
		`test "$(id -un) $PWD" = "agent /workspace"`,
		`for tool in bash curl wget git ssh less ps killall file patch diff unzip zip xz jq rg make gcc g++ pkg-config python3 pip3 node npm sqlite3; do command -v $tool >/dev/null || exit 1; done`,
		`printf '#include <stdio.h>\nint main(void) { puts("compiled"); }\n' >main.c`, `make -s main`, `./main`,
		`python3 -m venv --without-pip env`, `env/bin/python -c "print('python')"`, `node -e "console.log('node')"`, `sqlite3 db "select 'sqlite'"`,
		`git init -q`, `git add main.c`, `git -c user.name=a -c user.email=a@example.org commit -qm first`, `git log --format=%s`,
	}, " && ")
	if err := json.Unmarshal(c.send("POST", "/api/conversations", map[string]any{"initial_user_msg": task}), &made); err != nil {
		t.Fatal(err)
	}
	c.finished(made.ID, 1, `compiled\npython\nnode\nsqlite\nfirst\n`)
	c.send("DELETE", "/api/conversations/"+made.ID, nil)
}

// folder is a folder with release files.
type folder struct{ dir, image string }

// releases returns the folders that make image-test has built, DECKHAND_IMAGE_OLD and DECKHAND_IMAGE_NEW.
func releases(t *testing.T) (before, after folder) {
	t.Helper()
	found := map[string]folder{}
	for _, name := range []string{"DECKHAND_IMAGE_OLD", "DECKHAND_IMAGE_NEW"} {
		dir := os.Getenv(name)
		if dir == "" {
			t.Skip("SKIPPED: use make image-test, which builds the images and runs this test")
		}
		images, err := filepath.Glob(filepath.Join(dir, "deckhand_*_linux_amd64.image.tar.gz"))
		if err != nil || len(images) != 1 {
			t.Fatalf("%s has the images %v, %v", dir, images, err)
		}
		found[name] = folder{dir, images[0]}
	}
	return found["DECKHAND_IMAGE_OLD"], found["DECKHAND_IMAGE_NEW"]
}

// containers are a server and its proxy on a container engine.
type containers struct {
	t                          *testing.T
	name, socket, sandbox, key string
	port                       int
}

func (c *containers) docker(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+c.socket)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *containers) clear() {
	for _, args := range [][]string{{"logs", c.name}, {"rm", "-f", c.name, c.name + "-proxy"}, {"volume", "rm", c.name + "-data", c.name + "-run"}} {
		cmd := exec.Command("docker", args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+c.socket)
		if out, err := cmd.CombinedOutput(); err != nil || args[0] == "logs" && c.t.Failed() {
			c.t.Logf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// inspectImage checks the properties of an image. The program in the running container is about as large as that in the image.
func (c *containers) inspectImage(image string) {
	c.t.Helper()
	var found []struct {
		Size   int64
		Config struct {
			User        string
			Healthcheck struct{ Test []string }
			Volumes     map[string]any
		}
	}
	if err := json.Unmarshal([]byte(c.docker("image", "inspect", image)), &found); err != nil {
		c.t.Fatal(err)
	}
	copied := filepath.Join(c.t.TempDir(), "deckhand")
	c.docker("cp", c.name+":/usr/bin/deckhand", copied)
	program, err := os.Stat(copied)
	if err != nil {
		c.t.Fatal(err)
	}
	i := found[0]
	c.t.Logf("the image has %.1f MB, the program %.1f MB", float64(i.Size)/1e6, float64(program.Size())/1e6)
	if i.Size > program.Size()*12/10 {
		c.t.Error("the image is larger than 1.2 times the program")
	}
	if i.Config.User != "65532:65532" || len(i.Config.Healthcheck.Test) == 0 || i.Config.Volumes["/var/lib/deckhand"] == nil {
		c.t.Errorf("the configuration of the image is %+v", i.Config)
	}
}

// start starts the proxy and the server. The engine for tests has no bridge, so the server uses the network of the machine.
func (c *containers) start(image string) {
	c.t.Helper()
	info, err := os.Stat(c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	hardened := []string{"run", "-d", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--ulimit", "nofile=4096:4096", "-v", c.name + "-run:/run/deckhand"}
	proxy := append(hardened[:len(hardened):len(hardened)], "--name", c.name+"-proxy", "--network", "none", "--no-healthcheck",
		"--group-add", fmt.Sprint(groupOf(info)), "-v", c.socket+":/var/run/docker.sock", image, "docker-proxy")
	c.docker(proxy...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	c.docker(append(hardened[:len(hardened):len(hardened)], "--name", c.name, "--network", "host", "--tmpfs", "/tmp", "--health-interval", "1s",
		"-v", c.name+"-data:/var/lib/deckhand", "-e", "DECKHAND_DOCKER_HOST=unix:///run/deckhand/docker.sock", "-e", "DECKHAND_SANDBOX_IMAGE="+c.sandbox,
		"-e", fmt.Sprintf("DECKHAND_ADDR=127.0.0.1:%d", c.port), image)...)
	c.healthy()
	pack := c.docker("cp", c.name+":/var/lib/deckhand/admin.key", "-")
	c.key = strings.Trim(pack[min(512, len(pack)):], "\x00\n ")
}

func (c *containers) until(what string, yes func() bool) {
	c.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 900 {
		if yes() {
			return
		}
		<-tick.C
	}
	c.t.Fatal(what)
}

// healthy waits until the engine has seen a successful health check.
func (c *containers) healthy() {
	c.t.Helper()
	c.until("the container is not healthy", func() bool {
		return c.docker("inspect", "--format", "{{.State.Health.Status}}", c.name) == "healthy"
	})
}

func (c *containers) send(method, path string, body any) []byte {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", c.port, path), bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer got.Body.Close()
	said, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %s %s %v", method, path, got.Status, said, err)
	}
	return said
}

// finished waits until a conversation has had some turns, and looks for output of a command.
func (c *containers) finished(id string, turns int, want string) {
	c.t.Helper()
	var events string
	c.until("the turn does not end", func() bool {
		events = string(c.send("GET", "/api/conversations/"+id+"/events?limit=100", nil))
		return strings.Count(events, `"observation":"run"`) >= turns && strings.Contains(events, want)
	})
}

// groupOf returns the group of a file.
func groupOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Gid }
