package packaging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
)

// asFedora makes dnf of the box ready: packages of Debian, which rpm does not know, stand for those that the package of Deckhand needs.
const asFedora = `
echo assumeyes=1 >>/etc/dnf/dnf.conf
mkdir -p /srv/box/rpm
cat >/srv/box/rpm/base.spec <<'END'
Name: base
Version: 1
Release: 1
Summary: Packages that rpm does not know
License: none
BuildArch: noarch
Provides: git, shadow-utils
%description
%files
END
rpmbuild -bb --define '_rpmdir /srv/box/rpm' --define '_topdir /srv/box/rpm' /srv/box/rpm/base.spec
dnf install /srv/box/rpm/noarch/base-1-1.noarch.rpm
`

// TestServiceFromRPM installs, upgrades and removes the rpm packages with dnf on a separate systemd. DECKHAND_RPM_OLD and DECKHAND_RPM_NEW are
// the paths of the two packages. The machine is a Debian one: it has no SELinux.
func TestServiceFromRPM(t *testing.T) {
	before, after := os.Getenv("DECKHAND_RPM_OLD"), os.Getenv("DECKHAND_RPM_NEW")
	if before == "" || after == "" {
		t.Skip("SKIPPED: use make package-test, which builds the packages and runs this test")
	}
	b := boot(t)
	if out, err := b.try("sh", "-c", "command -v dnf && command -v rpmbuild"); err != nil {
		dockertest.Missing(t, "dnf or rpmbuild is not installed; Debian has them in: dnf rpm "+out)
	}
	b.run("sh", "-ec", asFedora)
	b.copy(before, "old/deckhand_0.1_amd64.rpm")
	b.copy(after, "new/deckhand_0.2_amd64.rpm")
	b.run("rpm", "-K", "--nosignature", "/srv/box/new/deckhand_0.2_amd64.rpm")
	b.upgrades("dnf install")
	b.run("rpm", "-V", "--nodeps", "deckhand")

	const config = "/etc/deckhand/deckhand.yaml"
	b.run("sh", "-c", "echo 'log-level: debug' >>"+config)
	b.manual("/root", "install.md", "systemctl reload")
	b.run("dnf", "reinstall", "/srv/box/new/deckhand_0.2_amd64.rpm")
	b.ready()
	if got := b.run("tail", "-n1", config); got != "log-level: debug" {
		t.Errorf("the config file after an installation ends with %s", got)
	}

	id := b.create("$ touch begun; while true; do echo tick; sleep 0.2; done")
	b.begins(id)
	b.run("dnf", "remove", "deckhand")
	if left := b.run("sh", "-c", "ls -d /usr/bin/deckhand /usr/share/deckhand /usr/share/doc/deckhand /usr/lib/systemd/system/deckhand.service 2>/dev/null || pgrep -x 'deckhand|runner' || true"); left != "" {
		t.Errorf("not removed: %s", left)
	}
	b.run("mv", config+".rpmsave", config)
	b.manual("/srv/box/new", "install.md", "dnf install")
	b.ready()
	if got := b.events(id); !strings.Contains(got, "touch begun") {
		t.Errorf("the data after removal and installation: %s", got)
	}
	if got := b.run("deckhand", "config", "show"); !strings.Contains(got, "debug") {
		t.Errorf("the settings after removal and installation: %s", got)
	}
	for _, path := range []string{"monitoring/alerts.yml", "monitoring/dashboard.json", "sandbox-image"} {
		b.run("test", "-s", filepath.Join("/usr/share/deckhand", path))
	}
}
