package docker_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
)

func TestView(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "mkdir -p a/b; echo content > a/b/c; ln -s /etc/passwd out")
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	root, err := r.View(t.Context(), h)
	if errors.Is(err, sandbox.ErrUnseen) {
		t.Skipf("SKIPPED: the engine's volumes cannot be read by this user: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if got, err := root.ReadFile("a/b/c"); err != nil || string(got) != "content\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := root.ReadFile("out"); err == nil {
		t.Error("a link leads out of the workspace")
	}
	if _, err := r.View(t.Context(), sandbox.Handle{ID: newID()}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("no workspace: %v", err)
	}
	far := newRig(t, func(o *docker.Options) { o.Host, o.Instance = forward(t), r.options.Instance })
	if _, err := far.View(t.Context(), h); !errors.Is(err, sandbox.ErrUnseen) {
		t.Errorf("an engine elsewhere: %v", err)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo content > file")
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	looking, err := r.Inspect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer looking.Close()
	r.want(looking, "cat /workspace/file; echo x > /workspace/file || echo refused; rm -f /workspace/file || echo refused", "content\nrefused\nrefused")
	if got := r.run(looking, "/bin/nc", "127.0.0.1", "3128"); got.Exit == 0 {
		t.Error("it has a way out")
	}
	// It is not the sandbox, which did not wake up.
	found, err := r.List(t.Context())
	if err != nil || len(found) != 1 || found[0].Running {
		t.Errorf("found %v, %v", found, err)
	}
	if err := looking.Close(); err != nil {
		t.Error(err)
	}
	if left := r.passing(); left != 0 {
		t.Errorf("%d containers are left of the look", left)
	}
	if _, err := r.Inspect(t.Context(), sandbox.Handle{ID: newID()}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("no workspace: %v", err)
	}

	// Destroying a workspace does not wait for its viewers.
	looking, err = r.Inspect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer looking.Close()
	if err := r.Destroy(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	<-looking.Done()
}

// passing counts the containers that live for one look.
func (r *rig) passing() int {
	r.t.Helper()
	got, err := r.engine.ContainerList(context.Background(), client.ContainerListOptions{All: true,
		Filters: make(client.Filters).Add("label", "deckhand.instance="+r.options.Instance)})
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for _, c := range got.Items {
		if c.Labels["deckhand.passing"] != "" {
			n++
		}
	}
	return n
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, `mkdir -m 700 dir; echo one > dir/file; chmod 751 dir/file; ln -s dir/file link; ln dir/file hard; mkfifo pipe
touch -d '2001-02-03 04:05:06' dir/file; echo hidden > .hidden; printf 'x' > "$(printf 'bad\377name')"; echo later > change`)
	const tell = `stat -c '%n %A %u %g %s %h' dir dir/file hard link pipe .hidden; stat -c %y dir/file; readlink link; cat link .hidden; ls | wc -l; ls -ld . | cut -c1-10`
	before := r.sh(box, tell)

	id := newID()
	if err := r.Snapshot(t.Context(), h, id); err != nil {
		t.Fatal(err)
	}
	if left := r.passing(); left != 0 {
		t.Errorf("%d containers are left of the copy", left)
	}
	r.sh(box, "echo changed > change")
	if err := r.Snapshot(t.Context(), h, id); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over one that exists: %v", err)
	}
	if err := r.Snapshot(t.Context(), sandbox.Handle{ID: newID()}, newID()); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("of one that does not exist: %v", err)
	}
	found, err := r.List(t.Context())
	if err != nil || len(found) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
	copied, _ := r.open(sandbox.Spec{ID: id})
	r.want(copied, tell, before)
	r.want(copied, "cat change", "later")
	r.want(box, "cat change", "changed")
}

// A copy keeps links that lead out of the workspace, hard links, modes and long names.
func TestSnapshotOfLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	long := strings.Repeat("n", 200)
	r.sh(box, "ln -s ../tmp/x out; ln -s ../../../etc/shadow far; ln -s /etc/hosts whole; mkdir -m 750 d; ln -s ../.. d/up; echo x > a; ln a d/b; mkdir -p "+long+"/"+long+"; echo y > "+long+"/"+long+"/f")
	id := newID()
	if err := r.Snapshot(t.Context(), h, id); err != nil {
		t.Fatal(err)
	}
	box, _ = r.open(sandbox.Spec{ID: id})
	r.want(box, "for l in out far whole d/up; do readlink $l; done; stat -c %a d; stat -c %h a; cat d/b "+long+"/"+long+"/f", "../tmp/x\n../../../etc/shadow\n/etc/hosts\n../..\n750\n2\nx\ny")
}
