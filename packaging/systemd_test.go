// Package packaging contains only tests. They install the packages on a systemd instance booted for the test.
package packaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServiceFromPackages installs a package, runs a task, upgrades the package while a command is
// running, and purges it. DECKHAND_OLD and DECKHAND_NEW are the paths of the two packages.
func TestServiceFromPackages(t *testing.T) {
	before, after := os.Getenv("DECKHAND_OLD"), os.Getenv("DECKHAND_NEW")
	if before == "" || after == "" {
		t.Skip("SKIPPED: use make package-test, which builds the packages and runs this test")
	}
	b := boot(t)
	b.copy(before, "old/deckhand_0.1_amd64.deb")
	b.copy(after, "new/deckhand_0.2_amd64.deb")
	b.upgrades("apt install")
	if got := b.manual("/root", "install.md", "journalctl"); !strings.Contains(got, "http://127.0.0.1:3000/") {
		t.Errorf("the login link in the journal: %s", got)
	}
	b.manual("/root", "install.md", "systemctl reload")
	b.runsForRoot()
	b.connects()
	b.showsSettings()
	b.exposure()
	b.restores()
	b.migrates()
	b.showsSocket()
	b.usesDocker()

	b.begins(b.create("$ touch begun; while true; do echo tick; sleep 0.2; done"))
	b.purge()
	b.installsWithoutPort("/srv/box/new")
	b.purge()
	b.installsArchive(filepath.Dir(after))
}

// upgrades installs the old package with the command of the manual, and the new one while a command is running. The command keeps running, and
// its result is recorded once.
func (b *box) upgrades(install string) {
	t := b.t
	t.Helper()
	b.manual("/srv/box/old", "install.md", install)
	if got := b.run("systemctl", "is-active", "deckhand"); got != "active" {
		t.Fatalf("the service is %s: %s", got, b.run("journalctl", "-u", "deckhand", "--no-pager"))
	}
	old := b.run("deckhand", "version")
	b.key = b.run("cat", "/var/lib/deckhand/admin.key")
	b.post("/api/settings", map[string]any{"llm_model": "scripted/demo"})

	id := b.create("$ touch begun; while ! test -e end; do echo tick; sleep 0.2; done; echo over")
	b.begins(id)
	b.manual("/srv/box/new", "upgrade.md", install)
	if now := b.run("deckhand", "version"); now == old {
		t.Errorf("the version is still %s", now)
	}
	b.ready()
	if restarted := b.run("systemctl", "show", "deckhand", "-p", "NRestarts", "--value"); restarted != "0" {
		t.Errorf("systemd had to restart the server %s times", restarted)
	}
	b.send("PUT", "/api/conversations/"+id+"/file", map[string]any{"path": "end", "content": "x"})
	b.until("the command does not end", func() bool { return strings.Contains(b.events(id), `"agent_state":"awaiting_user_input"`) })
	if all := b.events(id); strings.Count(all, `"observation":"run"`) != 1 || strings.Count(all, `tick\nover\n`) == 0 {
		t.Errorf("wanted one result of the command, got %.2000s", all[strings.Index(all, `"action":"run"`):])
	}
}

// begins waits until a command has created the file begun.
func (b *box) begins(id string) {
	b.t.Helper()
	b.until("the command does not start", func() bool {
		_, err := b.curl(base + "/api/conversations/" + id + "/select-file?file=begun")
		return err == nil
	})
}

// purge removes the package and expects that nothing is left.
func (b *box) purge() {
	t := b.t
	t.Helper()
	b.run("dpkg", "--purge", "deckhand")
	for _, path := range []string{"/usr/bin/deckhand", "/usr/share/deckhand", "/etc/deckhand", "/etc/default/deckhand", "/var/lib/deckhand", "/usr/lib/systemd/system/deckhand.service"} {
		if left := b.run("sh", "-c", "ls -d "+path+" 2>/dev/null || true"); left != "" {
			t.Errorf("%s was not removed", left)
		}
	}
	if left := b.run("sh", "-c", "getent passwd deckhand || pgrep -x 'deckhand|runner' || true"); left != "" {
		t.Errorf("not removed: %s", left)
	}
}

// showsSettings restarts the service with an environment variable and a credential, and expects that commands have the settings of the service.
func (b *box) showsSettings() {
	b.t.Helper()
	b.run("sh", "-ec", `umask 077
		echo 'DECKHAND_RATE_BURST="77"' >/etc/default/deckhand
		echo 'smtp://ada:hunter2@localhost:587?from=a@example.org' >/etc/deckhand/smtp-url
		mkdir -p -m 755 /etc/systemd/system/deckhand.service.d
		printf '[Service]\nLoadCredential=smtp-url:/etc/deckhand/smtp-url\n' >/etc/systemd/system/deckhand.service.d/smtp.conf
		systemctl daemon-reload
		systemctl restart deckhand`)
	b.ready()
	shown := strings.Join(strings.Fields(b.run("deckhand", "config", "show")), " ")
	for _, want := range []string{"data-dir /var/lib/deckhand package", "rate-burst 77 environment DECKHAND_RATE_BURST", "smtp-url-file /run/credentials/deckhand.service/smtp-url credential smtp-url"} {
		if !strings.Contains(shown, want) {
			b.t.Errorf("deckhand config show: %q is not in %s", want, shown)
		}
	}
	if got := b.run("deckhand", "config", "check"); !strings.Contains(got, "The configuration is valid.") {
		b.t.Errorf("deckhand config check: %s", got)
	}
	b.run("rm", "/etc/systemd/system/deckhand.service.d/smtp.conf")
}

// box is a set of namespaces, such as those of a systemd instance that was booted for the test.
type box struct {
	t   *testing.T
	dir string
	pid string
	key string
}

func boot(t *testing.T) *box {
	t.Helper()
	b := open(t, "systemd-box", func(b *box) bool {
		state, _ := b.try("systemctl", "is-system-running")
		return state == "running" || state == "degraded"
	})
	b.run("sh", "-ec", "cat >/usr/bin/sudo <<'END'\n"+sudo+"END\nchmod +x /usr/bin/sudo")
	return b
}

// open starts a script that makes separate namespaces, and waits until they are ready.
func open(t *testing.T, name string, ready func(*box) bool) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir()}
	script, err := filepath.Abs("../scripts/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, b.dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b.until(name+" does not start: "+said.String(), func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		b.pid = strings.TrimSpace(string(children))
		if err != nil || b.pid == "" {
			return false
		}
		return ready(b)
	})
	return b
}

// until polls a condition and fails the test with the message what if it does not hold within two minutes.
func (b *box) until(what string, yes func() bool) {
	b.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 1200 {
		if yes() {
			return
		}
		<-tick.C
	}
	b.t.Fatal(what)
}

func (b *box) try(args ...string) (string, error) {
	cmd := exec.Command("nsenter", append([]string{"--target", b.pid, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *box) run(args ...string) string {
	b.t.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

func (b *box) copy(from, name string) {
	b.t.Helper()
	to := filepath.Join(b.dir, name)
	text, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// curl sends a request to the server, which only processes in the box can reach.
func (b *box) curl(args ...string) (string, error) {
	return b.try(append([]string{"curl", "-sS", "--fail-with-body", "-H", "Authorization: Bearer " + b.key}, args...)...)
}

const base = "http://127.0.0.1:3000"

func (b *box) post(path string, body any) string {
	b.t.Helper()
	return b.send("POST", path, body)
}

func (b *box) send(method, path string, body any) string {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.curl("-X", method, "-H", "Content-Type: application/json", "-d", string(text), base+path)
	if err != nil {
		b.t.Fatalf("%s %s: %v %s", method, path, err, out)
	}
	return out
}

func (b *box) create(task string) string {
	b.t.Helper()
	var made struct {
		ID string `json:"conversation_id"`
	}
	if err := json.Unmarshal([]byte(b.post("/api/conversations", map[string]any{"initial_user_msg": task})), &made); err != nil {
		b.t.Fatal(err)
	}
	return made.ID
}

func (b *box) events(id string) string {
	out, _ := b.curl(base + "/api/conversations/" + id + "/events?limit=100")
	return out
}

// ready waits until the server responds.
func (b *box) ready() {
	b.t.Helper()
	b.until("the server does not respond", func() bool { _, err := b.curl(base + "/health"); return err == nil })
}
