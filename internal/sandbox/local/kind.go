package local

import (
	"path/filepath"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
)

// Kind is the driver as a server chooses it.
var Kind = sandbox.Kind{
	Properties: sandbox.Properties{Name: Name, Label: "Linux namespaces, no daemon", Auto: 1, Confined: true, Folders: true},
	Open: func(o sandbox.Options) (sandbox.Driver, error) {
		return New(Options{Dir: o.Dir, Runner: o.Runner, Shared: o.Shared, RootFS: o.RootFS, Outward: o.Outward, Limits: o.Limits, Together: o.Together, Logger: o.Logger})
	},
}

// usualPath finds programs on any system.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Path implements sandbox.Pather: a sandbox looks for programs where we do, as
// far as that is not hidden. A root file system of its own has its own programs.
func (d *Driver) Path(ours string) string {
	if d.base.rootFS != "" {
		return ""
	}
	var seen []string
	for _, dir := range append(filepath.SplitList(ours), filepath.SplitList(usualPath)...) {
		visible := strings.HasPrefix(dir, "/usr/") || strings.HasPrefix(dir, "/opt/") || dir == "/bin" || dir == "/sbin"
		if visible && !slices.Contains(seen, dir) {
			seen = append(seen, dir)
		}
	}
	return strings.Join(seen, ":")
}
