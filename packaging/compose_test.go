package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

// TestCommandsOfTheManual runs the commands of docs/install.md for containers as they are written, on an engine with its default settings. The
// image for sandboxes cannot be pulled, so another one with a shell gets its name.
func TestCommandsOfTheManual(t *testing.T) {
	before, after := releases(t)
	b := engineBox(t)
	run, up, again := manual(t)

	t.Run("docker run", func(t *testing.T) {
		b := b.in(t)
		b.script(after.dir, run)
		b.started("deckhand")
		id := b.create("$ echo kept > file; cat file")
		b.ends(id, `kept\n`)
		b.run("docker", "restart", "deckhand")
		b.started("deckhand")
		b.post("/api/conversations/"+id+"/message", map[string]any{"message": "$ echo again $(cat file)"})
		b.ends(id, `again kept\n`)
		b.run("docker", "rm", "-f", "deckhand")
	})

	for _, file := range composeFiles {
		t.Run(file, func(t *testing.T) {
			b.in(t).compose(before, after, strings.ReplaceAll(up, "compose.proxy.yaml", file), again, file)
		})
	}
}

// composeFiles are the compose files of a release.
var composeFiles = []string{"compose.yaml", "compose.proxy.yaml"}

// compose starts the services of a compose file, upgrades them while a command is running, and removes them.
func (b *box) compose(before, after folder, up, again, file string) {
	t := b.t
	if _, err := exec.LookPath("docker-compose"); err != nil && !plugin() {
		dockertest.Missing(t, "neither docker compose nor docker-compose is installed; Debian has it in: docker-compose")
	}
	dir := filepath.Join(t.TempDir(), strings.ReplaceAll(file, ".", "-"))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	install := func(from folder, up string) {
		t.Helper()
		for _, name := range composeFiles { // both, as in the release
			text, err := os.ReadFile(filepath.Join(from.dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.run("docker", "load", "-i", from.image)
		b.script(dir, up)
	}
	service := func() string {
		t.Helper()
		return b.script(dir, "export DOCKER_GID=0; docker compose -f "+file+" ps -q deckhand")
	}
	id := ""
	defer func() {
		if t.Failed() {
			t.Logf("events: %s\n%s", b.events(id), b.script(dir, "export DOCKER_GID=0; docker compose -f "+file+" logs 2>&1"))
		}
		b.script(dir, "export DOCKER_GID=0; docker compose -f "+file+" down -v")
	}()
	install(before, up)
	b.started(service())
	id = b.create("$ touch begun; while ! test -e end; do echo tick; sleep 0.2; done; echo over")
	b.begins(id)
	old := b.run("docker", "exec", service(), "/usr/bin/deckhand", "version")
	install(after, again)
	b.started(service())
	if now := b.run("docker", "exec", service(), "/usr/bin/deckhand", "version"); now == old {
		t.Errorf("the version after the upgrade is still %s", now)
	}
	mounts := b.run("docker", "inspect", "-f", "{{range .Mounts}}{{.Source}} {{end}}", service())
	if socket := strings.Contains(mounts, "/docker.sock"); socket != (file == "compose.yaml") {
		t.Errorf("%s: the server has the mounts %s", file, mounts)
	}
	b.send("PUT", "/api/conversations/"+id+"/file", map[string]any{"path": "end", "content": "x"})
	b.ends(id, `tick\nover\n`)
	if n := strings.Count(b.events(id), `"observation":"run"`); n != 1 {
		t.Errorf("%d results of one command", n)
	}
	b.script(dir, "export DOCKER_GID=0 COMPOSE_FILE="+file+"\n"+strings.ReplaceAll(b.blocks("backup.md", "docker compose exec"), "sudo ", ""))
	if made, err := filepath.Glob(filepath.Join(dir, "backups", "backups", "*.json")); err != nil || len(made) != 1 {
		t.Errorf("%s: the backups %v, %v", file, made, err)
	}
	b.restoresVolumes(dir, file, id)
	b.send("DELETE", "/api/conversations/"+id, nil)
}

// restoresVolumes saves the volumes of sandboxes, removes them, and restores them, with the commands of the manual.
func (b *box) restoresVolumes(dir, file, id string) {
	t := b.t
	t.Helper()
	compose := "export DOCKER_GID=0; docker compose -f " + file + " "
	if listed := b.script(dir, b.blocks("backup.md", "docker volume ls --")); !strings.Contains(listed, id) {
		t.Errorf("the workspaces are in the volumes %s", listed)
	}
	b.script(dir, b.blocks("backup.md", "docker volume inspect"))
	b.script(dir, compose+"stop deckhand; docker rm -f $(docker ps -aq --filter label=deckhand=1); docker volume rm $(docker volume ls -q --filter label=deckhand=1)")
	b.script(dir, b.blocks("backup.md", "docker volume create"))
	b.script(dir, compose+"start deckhand")
	b.ready()
	b.post("/api/conversations/"+id+"/message", map[string]any{"message": "$ echo restored $(cat end)"})
	b.ends(id, `restored x\n`)
}

// engineBox starts an engine, with the image that sandboxes use by default.
func engineBox(t *testing.T) *box {
	t.Helper()
	if os.Geteuid() != 0 {
		dockertest.Missing(t, "the engine with default settings needs root")
	}
	b := open(t, "engine-box", func(b *box) bool { _, err := b.try("docker", "version"); return err == nil })
	t.Cleanup(func() { _, _ = b.try("sh", "-c", "docker ps -aq | xargs -r docker rm -fv") })
	b.importImage(b.dir)
	return b
}

// importImage gives an image with a shell the name of the image that sandboxes use by default. dir is the folder of the box as its programs see it.
func (b *box) importImage(dir string) {
	b.t.Helper()
	const name = "busybox.tar"
	if err := os.WriteFile(filepath.Join(b.dir, name), dockertest.Tar(b.t, dockertest.Busybox(b.t)...), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.run("docker", "import", filepath.Join(dir, name), "buildpack-deps:bookworm")
}

// manual returns the commands of docs/install.md that run the image: with docker run, and with compose. again are those of docs/upgrade.md,
// after the new image is loaded.
func manual(t *testing.T) (run, up, again string) {
	t.Helper()
	for _, block := range shellBlocks(t, "../docs/install.md") {
		switch {
		case strings.Contains(block, "docker run"):
			run = block
		case strings.Contains(block, "docker compose"):
			up = block
		}
	}
	for _, block := range shellBlocks(t, "../docs/upgrade.md") {
		if _, after, ok := strings.Cut(block, "image.tar.gz\n"); ok && strings.Contains(after, "docker compose") {
			again = after
		}
	}
	if run == "" || up == "" || again == "" {
		t.Fatal("docs/install.md or docs/upgrade.md has no commands for containers")
	}
	return run, up, again
}

// shellBlocks returns the blocks of shell commands of a page.
func shellBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// in returns the box for a subtest.
func (b *box) in(t *testing.T) *box {
	part := *b
	part.t = t
	return &part
}

// script runs shell commands in a folder. Debian's docker-compose is used where docker has no compose plugin.
func (b *box) script(dir, text string) string {
	b.t.Helper()
	if !plugin() {
		text = strings.ReplaceAll(text, "docker compose ", "docker-compose ")
	}
	return b.run("bash", "-euc", "cd '"+dir+"'\n"+text)
}

// plugin reports whether docker has the compose plugin.
func plugin() bool { return exec.Command("docker", "compose", "version").Run() == nil }

// started waits until the server in a container responds, and reads its key.
func (b *box) started(container string) {
	b.t.Helper()
	b.ready()
	b.key = b.run("sh", "-c", "docker cp "+container+":/var/lib/deckhand/admin.key - | tar -xO")
	b.post("/api/settings", map[string]any{"llm_model": "scripted/demo"})
}

// ends waits until the agent waits for the user, after a command with some output.
func (b *box) ends(id, want string) {
	b.t.Helper()
	b.until("the command does not end", func() bool { return strings.Contains(b.events(id), want) })
}
