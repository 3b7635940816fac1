package local

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/sandbox/local/box"
)

// templatePrefix starts the names of templates in the base's folder.
const templatePrefix = "root-"

// maxConfig is the size from which on a file in /etc is no setting.
const maxConfig = 4 << 20

// skeleton are the folders of a root that are empty at first, with the layers' places.
var skeleton = []string{
	"/dev", "/proc", "/run", "/home", "/opt", box.Workspace, box.Output,
	"/var/cache/apt/archives/partial", "/var/cache/debconf", "/var/cache/ldconfig", "/var/lib/misc", "/var/lib/pam", "/var/lib/ucf", "/var/lib/dpkg", "/var/lib/apt/lists/partial",
	"/var/local", "/var/log/apt", "/var/mail", "/var/opt", "/var/spool", "/var/backups",
}

// aptStates is where apt records which packages were installed automatically. The package lists
// are left out: they are large, and soon outdated.
const aptStates = "/var/lib/apt/extended_states"

// makeTemplate makes the folder under everything: the public settings of /etc without secrets,
// and places to mount on. It is named after its content, so it is made once and never changes
// under a sandbox that uses it.
func makeTemplate(dir string, layers []box.Layer, mounts []box.Mount, data string) (string, error) {
	t := &template{folders: map[string]bool{"/": true}}
	for _, d := range skeleton {
		t.folder(d, 0o755)
	}
	for _, l := range layers {
		t.folder(l.Target, 0o755)
	}
	for _, m := range mounts {
		t.folder(m.Target, 0o755)
	}
	t.folder(box.Home, 0o700)
	t.folder("/tmp", 0o777|fs.ModeSticky)
	t.folder("/var/tmp", 0o777|fs.ModeSticky)
	t.link("/var/run", "/run")
	t.link("/var/lock", "/run/lock")
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(name); err == nil {
			t.link(name, target)
		}
	}
	if chosen, err := os.ReadFile(aptStates); err == nil {
		t.file(aptStates, 0o644, chosen)
	}
	if err := t.settings(data); err != nil {
		return "", err
	}
	final := filepath.Join(dir, templatePrefix+hex.EncodeToString(t.sum()[:8]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	half, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(half)
	if err := t.write(half); err != nil {
		return "", err
	}
	if err := os.Rename(half, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return final, nil
}

// template is what a root holds, in the order in which it is made.
type template struct {
	items   []item
	folders map[string]bool
}

// item is a folder, a file or a link.
type item struct {
	name    string
	mode    fs.FileMode // with its type
	content []byte      // of a file, or where a link leads
}

func (t *template) folder(name string, mode fs.FileMode) {
	for above := name; above != "/"; above = path.Dir(above) {
		t.folders[above] = true
	}
	t.items = append(t.items, item{name: name, mode: mode | fs.ModeDir})
}

func (t *template) link(name, target string) {
	t.items = append(t.items, item{name: name, mode: fs.ModeSymlink, content: []byte(target)})
}

func (t *template) file(name string, mode fs.FileMode, content []byte) {
	t.items = append(t.items, item{name: name, mode: mode, content: content})
}

// sum is the same for the same content.
func (t *template) sum() []byte {
	sum := sha256.New()
	for _, i := range t.items {
		fmt.Fprintf(sum, "%q %o %d\n", i.name, i.mode, len(i.content))
		_, _ = sum.Write(i.content)
	}
	return sum.Sum(nil)
}

// write makes a root of it.
func (t *template) write(root string) error {
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	for _, i := range t.items {
		full := filepath.Join(root, i.name)
		var err error
		switch {
		case i.mode&fs.ModeSymlink != 0:
			if err := os.Symlink(string(i.content), full); err != nil {
				return err
			}
			continue
		case i.mode.IsDir():
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, i.content, 0o644)
		}
		if err == nil {
			err = os.Chmod(full, i.mode&^fs.ModeDir) // past the umask
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settings copies /etc and puts in what must be different inside.
func (t *template) settings(data string) error {
	t.folder("/etc", 0o755)
	own := ownSettings()
	err := filepath.WalkDir("/etc", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "/etc" {
			return nil // unreadable, so not world-readable
		}
		if secret(name) || name == data {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if _, replaced := own[name]; replaced {
			return nil
		}
		t.setting(name, d)
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if t.there(name) { // an /etc without apt needs no settings for it
			t.file(name, 0o644, own[name])
		}
	}
	return err
}

// setting copies one file, folder or link.
func (t *template) setting(name string, d fs.DirEntry) {
	info, err := d.Info()
	if err != nil {
		return
	}
	mode := info.Mode().Perm()
	switch {
	case d.IsDir():
		if mode&0o005 == 0o005 {
			t.folder(name, mode|0o700)
		}
	case d.Type()&fs.ModeSymlink != 0:
		if target, err := os.Readlink(name); err == nil && t.there(name) {
			t.link(name, target)
		}
	case d.Type().IsRegular() && mode&0o004 != 0 && info.Size() <= maxConfig && t.there(name):
		content, err := os.ReadFile(name)
		if err != nil || bytes.Contains(content, []byte("PRIVATE KEY-----")) {
			return
		}
		t.file(name, mode|0o600, content)
	}
}

// there says whether the folder that holds name was copied.
func (t *template) there(name string) bool { return t.folders[path.Dir(name)] }

// Names in /etc that are not copied even if all users of the machine may read them.
var (
	secretPaths = []string{
		"/etc/ssl/private", "/etc/ssh", "/etc/sudoers.d", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/docker", "/etc/kubernetes",
		"/etc/rancher", "/etc/wireguard", "/etc/openvpn", "/etc/ppp", "/etc/NetworkManager", "/etc/netplan", "/etc/systemd/system",
		"/etc/subuid", "/etc/subgid", "/etc/fstab", "/etc/crypttab", "/etc/exports", "/etc/environment", "/etc/netrc", "/etc/motd", "/etc/issue.net",
		"/etc/crontab", "/etc/cron.d", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/adjtime",
	}
	secretPatterns = []string{
		"shadow*", "gshadow*", "passwd-", "group-", "subuid-", "subgid-", "sudoers*", "deckhand*", "*.key", "*_key", "*.keytab", "*.p12", "*.pfx", "*secret*", "*password*", "*credential*",
	}
)

// secret says whether a file in /etc may tell something that is not for sandboxes.
func secret(name string) bool {
	if slices.Contains(secretPaths, name) {
		return true
	}
	base := strings.ToLower(path.Base(name))
	return slices.ContainsFunc(secretPatterns, func(p string) bool { ok, _ := path.Match(p, base); return ok })
}

// ownSettings are the files that are different in sandboxes.
func ownSettings() map[string][]byte {
	id := sha256.Sum256([]byte("deckhand sandbox"))
	return map[string][]byte{
		"/etc/hostname":    []byte(box.Hostname + "\n"),
		"/etc/hosts":       []byte("127.0.0.1\tlocalhost " + box.Hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		"/etc/resolv.conf": nil,
		"/etc/machine-id":  []byte(hex.EncodeToString(id[:16]) + "\n"),
		"/etc/passwd":      systemUsers("/etc/passwd"),
		"/etc/group":       systemUsers("/etc/group"),
		// Changing to another user is not possible inside, nor of use.
		"/etc/apt/apt.conf.d/90deckhand": []byte("APT::Sandbox::User \"root\";\n"),
	}
}

// systemUsers are the lines of a user or group file that are not about people.
func systemUsers(file string) []byte {
	var out bytes.Buffer
	content, _ := os.ReadFile(file)
	root := false
	for s := bufio.NewScanner(bytes.NewReader(content)); s.Scan(); {
		f := strings.Split(s.Text(), ":")
		if len(f) < 4 {
			continue
		}
		id, err := strconv.Atoi(f[2])
		if err != nil || id >= 1000 && id != 65534 {
			continue
		}
		root = root || id == 0
		if len(f) == 4 {
			f[3] = "" // who of the machine's people is in it
		} else if id == 0 {
			f[5] = box.Home
		}
		out.WriteString(strings.Join(f, ":") + "\n")
	}
	if !root {
		line := "root:x:0:0:root:" + box.Home + ":/bin/sh\n"
		if path.Base(file) == "group" {
			line = "root:x:0:\n"
		}
		out.WriteString(line)
	}
	return out.Bytes()
}
