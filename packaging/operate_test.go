package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

// sudo stands for the command of the same name, which a minimal machine does not have. Like sudo, it does not pass on environment variables.
const sudo = `#!/bin/sh
if test "$1" = -u; then
	user=$2
	shift 2
	exec env -i PATH="$PATH" HOME="$(getent passwd "$user" | cut -d: -f6)" runuser -u "$user" -- "$@"
fi
exec env -i PATH="$PATH" HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
`

// manual runs the shell blocks of a page that contain a text, as they are written, in a folder of the box.
func (b *box) manual(dir, page, text string) string {
	b.t.Helper()
	return b.script(dir, "export HOME=/root\n"+b.blocks(page, text))
}

// blocks returns the shell blocks of a page that contain a text.
func (b *box) blocks(page, text string) (found string) {
	b.t.Helper()
	for _, block := range shellBlocks(b.t, "../docs/"+page) {
		if strings.Contains(block, text) {
			found += block
		}
	}
	if found == "" {
		b.t.Fatalf("docs/%s has no commands with %s", page, text)
	}
	return found
}

// runsForRoot runs a first task as root, which leaves files in root's data directory. Commands still manage the service.
func (b *box) runsForRoot() {
	b.t.Helper()
	// The root file system of the box cannot be that of a sandbox of root.
	b.script("/root", "export HOME=/root DECKHAND_SANDBOX=host\n"+b.blocks("first-task.md", "deckhand run --yes"))
	if mode := b.run("stat", "-c", "%a", "/root/.local/share/deckhand"); mode != "700" {
		b.t.Errorf("the data directory that the task left has the mode %s", mode)
	}
	if got := b.run("sudo", "deckhand", "health"); got != "ready" {
		b.t.Errorf("deckhand health after a task of root: %s", got)
	}
	if got := b.run("sudo", "deckhand", "config", "show"); !strings.Contains(got, "/var/lib/deckhand  package") {
		b.t.Errorf("deckhand config show after a task of root: %s", got)
	}
}

// connects runs the client commands of the manual, first without the variables that it names.
func (b *box) connects() {
	b.t.Helper()
	if out, err := b.try("sudo", "deckhand", "new", "task"); err == nil || !strings.Contains(out, "for the deckhand service of this machine, use --server") {
		b.t.Errorf("deckhand new without a server: %v %s", err, out)
	}
	if got := b.manual("/root", "users.md", "sudo deckhand user list"); !strings.Contains(got, "admin") {
		b.t.Errorf("deckhand user list: %s", got)
	}
	commands := b.blocks("first-task.md", "DECKHAND_SERVER=") + b.blocks("first-task.md", "deckhand attach")
	if got := b.script("/root", commands); !strings.HasSuffix(got, "\nturn_ended") {
		b.t.Errorf("the client commands printed %s", got)
	}
}

// restores makes backups, and restores one, with the commands of the manual.
func (b *box) restores() {
	b.t.Helper()
	id := b.create("$ echo kept > file; cat file")
	b.ends(id, `kept\n`)
	const folder, data = "/var/backups/deckhand", "/var/lib/deckhand"
	if out, err := b.try("runuser", "-u", "nobody", "--", "deckhand", "backup", "/tmp/backups"); err == nil || !strings.Contains(out, "the deckhand service of this machine uses "+data) {
		b.t.Errorf("deckhand backup by another user: %v %s", err, out)
	}
	b.run("touch", data+"/last-backup") // as root, like a tool that the operator uses instead
	b.manual("/root", "backup.md", "sudo deckhand backup "+folder)
	b.manual("/root", "backup.md", "deckhand-backup.timer")
	b.run("systemctl", "start", "deckhand-backup.service")
	b.run("sudo", "-u", "deckhand", "deckhand", "backup", folder)
	b.run("sudo", "deckhand", "backup", folder, "--data-dir", data)
	if list := strings.Split(b.run("sudo", "deckhand", "backup", "list", folder), "\n"); len(list) != 1+4 {
		b.t.Errorf("wanted 4 backups, got %q", list)
	}
	owned := func() {
		b.t.Helper()
		if wrong := b.run("find", data, folder, "!", "-user", "deckhand", "-ls"); wrong != "" {
			b.t.Errorf("these files do not belong to the user of the service:\n%s", wrong)
		}
	}
	owned()

	b.run("chown", "root:", folder)
	if out, err := b.try("sudo", "deckhand", "backup", folder); err == nil || !strings.Contains(out, "chown -R deckhand: "+folder) {
		b.t.Errorf("backup to a folder of root: %v %s", err, out)
	}
	b.run("chown", "deckhand:", folder)

	lost := b.create("$ echo lost")
	b.ends(lost, `lost\n`)
	b.manual("/root", "backup.md", "sudo deckhand restore")
	b.ready()
	owned()
	if got := b.events(id); !strings.Contains(got, `kept\n`) {
		b.t.Errorf("the restored conversation: %s", got)
	}
	if got := b.events(lost); strings.Contains(got, `lost\n`) {
		b.t.Error("a conversation that is not in the backup was restored")
	}
	b.send("POST", "/api/conversations/"+id+"/message", map[string]any{"message": "$ echo again $(cat file)"})
	b.ends(id, `again kept\n`)
}

// migrates moves the data to PostgreSQL and back, with the commands of the manual.
func (b *box) migrates() {
	b.t.Helper()
	version, err := b.try("sh", "-ec", "ls /etc/postgresql | tail -n1")
	if err != nil || version == "" {
		dockertest.Missing(b.t, "PostgreSQL is not installed; Debian has it in: postgresql")
	}
	b.run("systemctl", "start", "postgresql@"+version+"-main")
	id := b.create("$ echo moved > file; cat file")
	b.ends(id, `moved\n`)
	b.manual("/root", "configure.md", "CREATE ROLE")
	for i, block := range []string{"--to-file /etc/deckhand/database-url", "--from-file /etc/deckhand/database-url"} {
		if got := b.manual("/root", "configure.md", block); !strings.Contains(got, "Both databases are equal.") {
			b.t.Errorf("deckhand migrate: %s", got)
		}
		b.ready()
		if got := b.run("sudo", "deckhand", "config", "show"); strings.Contains(got, "database-url-file") != (i == 0) {
			b.t.Errorf("deckhand config show: %s", got)
		}
		want := fmt.Sprintf(`move %d moved\n`, i)
		b.send("POST", "/api/conversations/"+id+"/message", map[string]any{"message": fmt.Sprintf("$ echo move %d $(cat file)", i)})
		b.ends(id, want)
	}
}

// showsSocket applies the drop-in of the manual for an engine of another user, and checks that the service can use the socket.
func (b *box) showsSocket() {
	b.t.Helper()
	text, err := os.ReadFile("../docs/install.md")
	if err != nil {
		b.t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```ini\n([^`]*BindPaths=(\\S+)[^`]*)```").FindSubmatch(text)
	if block == nil {
		b.t.Fatal("docs/install.md has no drop-in with BindPaths")
	}
	socket := string(block[2])
	dropIn := strings.ReplaceAll(string(block[1]), "Environment=DECKHAND_DOCKER_HOST", "# ") // a file stands for the socket
	if err := os.WriteFile(filepath.Join(b.dir, "docker.conf"), []byte(dropIn), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.run("sh", "-ec", "mkdir -p -m 700 "+filepath.Dir(socket)+"; touch "+socket+"; chmod 666 "+socket)
	usable := func() bool {
		_, err := b.try("sh", "-ec", "nsenter --target $(systemctl show deckhand -p MainPID --value) --mount setpriv --reuid deckhand --regid deckhand --clear-groups test -w "+socket)
		return err == nil
	}
	if usable() {
		b.t.Error("the service sees the socket without the drop-in")
	}
	b.run("sh", "-ec", "mkdir -p /etc/systemd/system/deckhand.service.d; cp /srv/box/docker.conf /etc/systemd/system/deckhand.service.d/; systemctl daemon-reload; systemctl restart deckhand")
	b.ready()
	if !usable() {
		b.t.Error("the service cannot use the socket with the drop-in")
	}
	b.run("rm", "-r", "/etc/systemd/system/deckhand.service.d")
}

// usesDocker gives the service access to a container engine, with the commands of the manual, and runs a command in a container.
func (b *box) usesDocker() {
	b.t.Helper()
	if _, err := b.try("sh", "-c", "command -v dockerd"); err != nil {
		dockertest.Missing(b.t, "Docker is not installed; Debian has it in: docker.io")
	}
	// The data directory of an engine cannot be on the overlay of the box.
	b.script("/srv/box", `mkdir -p /etc/docker; echo '{"data-root": "/srv/box/docker"}' >/etc/docker/daemon.json; systemctl restart docker`)
	b.importImage("/srv/box")
	b.manual("/root", "install.md", "usermod -aG docker")
	b.ready()
	id := b.create("$ echo contained")
	b.ends(id, `contained\n`)
	if got := b.run("docker", "ps", "--format", "{{.Names}}"); !strings.Contains(got, id) {
		b.t.Errorf("the containers are %s", got)
	}
	b.run("systemctl", "stop", "deckhand")
	b.manual("/root", "install.md", "docker rm -fv")
	if left := b.run("sh", "-c", "docker ps -aq; docker volume ls -q"); left != "" {
		b.t.Errorf("left on the engine: %s", left)
	}
	b.run("sh", "-ec", "gpasswd -d deckhand docker; systemctl restart deckhand; systemctl stop docker docker.socket")
	b.ready()
}

// exposure compares the score of the service with the manual.
func (b *box) exposure() {
	b.t.Helper()
	text, err := os.ReadFile("../docs/install.md")
	if err != nil {
		b.t.Fatal(err)
	}
	want := regexp.MustCompile(`rates its exposure ([0-9.]+) \((\w+)\)`).FindSubmatch(text)
	if want == nil {
		b.t.Fatal("docs/install.md does not state the exposure of the service")
	}
	score := b.run("systemd-analyze", "security", "deckhand", "--no-pager")
	if overall := score[strings.LastIndex(score, "Overall"):]; !strings.Contains(overall, string(want[1])+" "+string(want[2])) {
		b.t.Errorf("docs/install.md states %s (%s), not %s", want[1], want[2], overall)
	}
}

// installsWithoutPort installs the package while another program uses the port. The server starts when the port is free.
func (b *box) installsWithoutPort(dir string) {
	b.t.Helper()
	b.run("systemd-run", "--unit=taken", "--socket-property=ListenStream=127.0.0.1:3000", "/bin/true")
	if got := b.manual(dir, "install.md", "apt install"); !strings.Contains(got, "Deckhand did not start") {
		b.t.Errorf("installed while the port was in use: %s", got)
	}
	if got := b.run("dpkg-query", "-W", "-f", "${Status}", "deckhand"); got != "install ok installed" {
		b.t.Errorf("the package is %s", got)
	}
	b.run("systemctl", "stop", "taken.socket")
	b.until("the server does not start when the port is free", func() bool {
		state, _ := b.try("systemctl", "is-active", "deckhand")
		return state == "active"
	})
}

// installsArchive runs the commands of the manual for the archive, in a folder with the release files.
func (b *box) installsArchive(release string) {
	b.t.Helper()
	for _, pattern := range []string{"install.sh", "SHA256SUMS", "deckhand_*_linux_amd64.tar.gz"} {
		files, err := filepath.Glob(filepath.Join(release, pattern))
		if err != nil || len(files) != 1 {
			b.t.Fatalf("%s in %s: %v %v", pattern, release, files, err)
		}
		b.copy(files[0], "archive/"+filepath.Base(files[0]))
	}
	b.run("chmod", "+x", "/srv/box/archive/install.sh")
	lines := strings.Split(strings.TrimSpace(b.blocks("install.md", "./install.sh --uninstall")), "\n")
	if len(lines) != 3 {
		b.t.Fatalf("wanted three commands with install.sh, got %q", lines)
	}
	programs := func() string {
		return b.run("sh", "-c", "for p in /usr/local /root/.local; do test ! -e $p/bin/deckhand || { ls $p/bin/deckhand $p/share/doc/deckhand/*; $p/bin/deckhand version; }; done")
	}
	lines[0] += "\n" + b.blocks("upgrade.md", "./install.sh")
	for i, line := range lines {
		b.script("/srv/box/archive", "export HOME=/root\n"+line)
		got := programs()
		if system, user := strings.Contains(got, "/usr/local/bin/deckhand"), strings.Contains(got, "/root/.local/bin/deckhand"); system != (i < 2) || user != (i > 0) ||
			!strings.HasSuffix(got, "\n0.2") || !strings.Contains(got, "share/doc/deckhand/sandbox-image") || !strings.Contains(got, "alerts.yml") {
			b.t.Errorf("after %s: %s", line, got)
		}
	}
}

// A release without the page is refused.
func TestDistNeedsThePage(t *testing.T) {
	t.Parallel()
	b := &box{t: t, dir: t.TempDir()}
	b.copy("../scripts/dist", "scripts/dist")
	cmd := exec.Command("sh", "-ec", `mkdir -p web/dist; git init -q; git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first
		if bash scripts/dist out linux/amd64; then echo "it succeeded"; fi`)
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "the web page is not built") || strings.Contains(string(out), "it succeeded") {
		t.Errorf("scripts/dist without the page: %v %s", err, out)
	}
}
