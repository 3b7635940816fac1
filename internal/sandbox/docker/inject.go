package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"strings"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/account"
	"deckhand/internal/sandbox/docker/words"
)

// How the runner gets into a container: mounted read-only if the engine sees the
// same files as we do, which costs nothing; copied otherwise, which takes a
// while each time. Whether it does is found out by trying.

// runner returns the path of the runner for the engine.
func (d *Driver) runner() string {
	if other := d.other.Load(); other != nil {
		return *other
	}
	return d.options.Runner
}

// match chooses the runner for the architecture of the engine, which may be on another machine.
func (d *Driver) match(ctx context.Context) error {
	if d.options.RunnerFor == nil || d.options.Runner == "" || d.other.Load() != nil {
		return nil
	}
	arch := d.about(ctx).arch
	if arch == "" || arch == d.arch {
		return nil
	}
	path, err := d.options.RunnerFor(arch)
	if err != nil {
		return words.Unavailable(err, "The container engine at %s is for %s, and this server only has a runner for %s. Use an engine for %s, or run the server on a machine like the engine's.",
			d.engine.Address, arch, d.arch, d.arch)
	}
	d.other.Store(&path)
	return nil
}

// inject decides how the runner gets in.
func (d *Driver) inject(p *plan) {
	p.mounts, p.copies = false, false
	switch {
	case p.Prepared:
		if p.program == "" {
			p.program = d.images.RunnerOf(p.image.id)
		}
	case d.engine.Local && !p.unmountable && !d.copies.Load():
		p.mounts = true
	default:
		p.copies = true
	}
	if p.program == "" {
		p.program = runnerPath
	}
}

// isRunnerMount reports an error about the mount of the runner: the engine does
// not see our file, or may not let a container run it. That it is no program for
// this image would be no better with a copy.
func (d *Driver) isRunnerMount(err error) bool {
	said := words.Brief(err)
	return words.Holds(said, runnerPath, d.runner()) && !words.Holds(said, "exec format error")
}

// seen reports whether the runner that a container would see is ours. A socket
// may lead to an engine with another file system than ours, in which there may
// be something else at the same place.
func (d *Driver) seen(ctx context.Context, containerID string) bool {
	if d.mounted.Load() {
		return true
	}
	there, err := d.engine.ContainerStatPath(ctx, containerID, client.ContainerStatPathOptions{Path: runnerPath})
	if err != nil {
		return true // starting it will tell
	}
	here, err := os.Stat(d.runner())
	if err != nil {
		return true
	}
	if here.Size() != there.Stat.Size || here.ModTime().Unix() != there.Stat.Mtime.Unix() {
		return false
	}
	d.mounted.Store(true)
	return true
}

// sameRunner reports whether the runner in a stopped container, which is mounted from another place, is equal to ours: another server on
// this machine made the container. What was installed in it is kept then.
func (d *Driver) sameRunner(ctx context.Context, containerID string) bool {
	got, err := d.engine.CopyFromContainer(ctx, containerID, client.CopyFromContainerOptions{SourcePath: runnerPath})
	if err != nil { // such as that there is no such file any more
		return false
	}
	defer got.Content.Close()
	r := tar.NewReader(got.Content)
	if _, err := r.Next(); err != nil {
		return false
	}
	ours, err := os.ReadFile(d.runner())
	if err != nil {
		return false
	}
	theirs, err := io.ReadAll(io.LimitReader(r, int64(len(ours))+1))
	return err == nil && bytes.Equal(theirs, ours)
}

// owner is who files inside belong to.
type owner = account.Owner

// fill copies into a container that was made and not started what it needs: the
// runner if it cannot be mounted, and the folders that the runner could not make
// by itself.
func (d *Driver) fill(ctx context.Context, containerID string, p *plan) error {
	own, err := d.ownerIn(ctx, containerID, p)
	if err != nil {
		return err
	}
	if own == (owner{}) && !p.copies {
		return nil
	}
	// Podman does not see the volumes when something is copied to the top folder,
	// so there it goes right into ours. It gives the workspace to its user itself.
	to := "/"
	if d.isPodman(ctx) {
		to = home
	}
	pack, err := d.pack(p, own, to)
	if err != nil {
		return err
	}
	return d.copyIn(ctx, containerID, to, pack)
}

func (d *Driver) copyIn(ctx context.Context, containerID, to string, pack io.Reader) error {
	_, err := d.engine.CopyToContainer(ctx, containerID, client.CopyToContainerOptions{DestinationPath: to, Content: pack})
	return err
}

// pack is an archive of what has to be there, to be unpacked in a folder.
func (d *Driver) pack(p *plan, own owner, to string) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	inside := ""
	if to == "/" {
		inside = strings.TrimPrefix(home, "/") + "/"
		if err := addFolder(w, inside, 0o755, owner{}); err != nil {
			return nil, err
		}
		if own != (owner{}) && !p.passing && p.Folder == "" { // a new volume belongs to root
			if err := addFolder(w, strings.TrimPrefix(sandbox.Workspace, "/")+"/", 0o755, own); err != nil {
				return nil, err
			}
		}
	}
	if p.store != "" && p.writes && own != (owner{}) && to == "/" {
		if err := addFolder(w, strings.TrimPrefix(storePath, "/")+"/", 0o700, own); err != nil {
			return nil, err
		}
	}
	folders := map[string]int64{"run": 0o711, "state": 0o700, "output": 0o700} // the connector passes through run
	if p.Folder != "" {
		folders[homeFolder] = 0o700
	}
	for name, mode := range folders {
		if err := addFolder(w, inside+name+"/", mode, own); err != nil {
			return nil, err
		}
	}
	if p.copies {
		if err := d.addRunner(w, inside+path.Base(runnerPath)); err != nil {
			return nil, err
		}
	}
	return &out, w.Close()
}

// program is an archive of the runner alone, for our own folder.
func (d *Driver) program() (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := d.addRunner(w, path.Base(runnerPath)); err != nil {
		return nil, err
	}
	return &out, w.Close()
}

func (d *Driver) addRunner(w *tar.Writer, name string) error {
	program, err := os.ReadFile(d.runner())
	if err != nil {
		return words.Unavailable(err, "The runner cannot be read: %s", err)
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(program))}); err != nil {
		return err
	}
	_, err = w.Write(program)
	return err
}

func addFolder(w *tar.Writer, name string, mode int64, own owner) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: own.UID, Gid: own.GID})
}

// ownerIn finds the numbers of the user that a container runs as.
func (d *Driver) ownerIn(ctx context.Context, containerID string, p *plan) (owner, error) {
	if p.isRoot() {
		return owner{}, nil
	}
	user := p.user()
	if own, ok := d.images.OwnerOf(p.image.id, user); ok {
		return own, nil
	}
	own, err := account.Find(ctx, d.engine.Client, containerID, p.Image, user)
	if err == nil {
		d.images.SetOwner(p.image.id, user, own)
	}
	return own, err
}
