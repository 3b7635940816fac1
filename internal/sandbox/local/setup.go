package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
)

// rootLayer is the name of the layer under all.
const rootLayer = "root"

// folders makes a sandbox's folders, those that are not there.
func (d *Driver) folders(p *place, o plan) error {
	m := maker{dir: int(p.folder.Fd()), owner: int(p.meta.User)}
	m.make(box.HomeDir, 0o700)
	m.make(box.StateDir, 0o700)
	m.make(box.OutputDir, 0o755)
	m.make(box.TmpDir, 0o755)
	for _, d := range box.TmpDirs {
		name := box.TmpDir + "/" + d.Name
		m.make(name, 0o755)
		if m.err == nil && d.Mode != 0o755 { // past the umask
			m.err = unix.Fchmodat(m.dir, name, d.Mode, 0)
		}
	}
	m.make(box.UpDir, 0o755)
	layers := []string{rootLayer}
	for _, l := range d.base.layers {
		layers = append(layers, l.Name)
	}
	for _, name := range layers {
		m.make(box.UpDir+"/"+name, 0o755)
		m.make(box.UpDir+"/"+name+".w", 0o755)
	}
	if p.meta.User == 0 && d.base.rootFS == "" {
		// The system's folders have no owner inside then; a few that are the sandbox's own let
		// things be installed by hand.
		for _, name := range []string{"", "/bin", "/lib", "/share", "/include", "/sbin"} {
			m.make(box.UpDir+"/usr/local"+name, 0o755)
		}
	}
	if o.look == nil { // the last one, by whose owner a lost meta is found again
		m.make(box.WorkDir, 0o755)
	}
	return m.err
}

// maker makes folders that belong to the sandbox's first user.
type maker struct {
	dir   int
	owner int
	err   error
}

func (m *maker) make(name string, mode uint32) {
	if m.err != nil {
		return
	}
	err := unix.Mkdirat(m.dir, name, mode)
	if errors.Is(err, fs.ErrExist) {
		if m.owner != 0 {
			m.err = repairOwner(m.dir, name, uint32(m.owner))
		}
		return
	}
	if err == nil && m.owner != 0 {
		err = unix.Fchownat(m.dir, name, m.owner, m.owner, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		m.err = &os.PathError{Op: "make", Path: name, Err: err}
	}
}

// maxEnv is how much environment fits into a setup beside the rest.
const maxEnv = box.MaxMessage / 4

// setup describes the sandbox for its runner. The files travel with it and are
// the caller's to close, also after an error.
func (d *Driver) setup(p *place, o plan, pid int) (*box.Setup, []*os.File, error) {
	s := &box.Setup{
		ID: p.id, Box: p.dir, Network: string(o.network), Plain: o.plain, Mapped: d.mappedBefore.Load(),
		Root:     box.Layer{Name: rootLayer, Source: d.base.root, Target: "/"},
		FileSize: uint64(o.limits.Disk), Tether: o.look != nil, WorkReadOnly: o.look != nil,
	}
	size := 0
	for name, value := range o.env {
		size += len(name) + len(value) + 8
	}
	if size < maxEnv { // it is set again over the connection; this is so that the first shell has it
		s.Env = o.env
	}
	owner, folder := p, p.meta.Folder
	if o.look != nil {
		owner, folder, s.ID = o.look, o.look.meta.Folder, o.look.id
	}
	if o.look != nil || folder != "" {
		s.Work = owner.meta.workspace(owner.dir)
	}
	s.Layers = append(s.Layers, d.base.layers...)
	s.Mounts = append(d.base.present(), o.mounts...)
	masked, unmapped := d.base.hidden()
	s.Masked = masked
	if !d.groups.Has("pids") {
		s.Processes = uint64(o.limits.Processes)
	}
	if !d.groups.Has("memory") {
		s.Data = uint64(o.limits.Memory)
	}
	if !d.rights.Trees {
		return s, nil, nil
	}
	h := &hand{}
	s.BoxTree = h.over(p.dir, -1, false)
	if s.Work != "" && folder == "" {
		s.WorkTree = h.over(s.Work, -1, false)
	}
	for i := range s.Mounts {
		s.Mounts[i].Tree = h.over(s.Mounts[i].Source, -1, true)
	}
	if h.err != nil {
		return nil, h.files, h.err
	}
	return s, h.files, d.mapped(s, h, pid, folder, unmapped)
}

// mapped hands over the layers, with their owners mapped if that may and can be.
func (d *Driver) mapped(s *box.Setup, h *hand, pid int, folder, unmapped string) error {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: its users cannot be found: %w", errDied, err)
	}
	defer unix.Close(fd)
	if folder != "" { // what is written there must belong to us, not to the sandbox's users
		if s.WorkTree = h.lend(folder, fd); h.err != nil {
			return h.err
		}
	}
	layers := []*box.Layer{&s.Root}
	for i := range s.Layers {
		layers = append(layers, &s.Layers[i])
	}
	for _, l := range layers {
		// The root is our own copy, or a system that was made for sandboxes.
		users := fd
		if l != &s.Root && unmapped != "" {
			users = -1
		}
		l.Tree = h.over(l.Source, users, false)
		if h.err != nil && users >= 0 {
			d.tell("the system cannot be changed inside: " + h.err.Error())
			h.err = nil
			l.Tree = h.over(l.Source, -1, false)
		}
	}
	return h.err
}

// hand collects what is handed over.
type hand struct {
	files []*os.File
	err   error
}

// over makes a mount and returns its number.
func (h *hand) over(path string, users int, whole bool) int {
	return h.add(openTree(path, users, whole))
}

// lend makes a mount of a folder that can be written to, in which the users of
// the namespace are those of this machine.
func (h *hand) lend(path string, users int) int {
	return h.add(lendTree(path, users))
}

func (h *hand) add(f *os.File, err error) int {
	if h.err != nil {
		if f != nil {
			f.Close()
		}
		return 0
	}
	if err != nil {
		h.err = err
		return 0
	}
	h.files = append(h.files, f)
	return len(h.files)
}
