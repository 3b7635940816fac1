package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"

	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox/docker/dockertest"
)

// deckhand run --sandbox docker works in the current folder, as on machines whose only sandboxes are containers: nothing else is mounted,
// files belong to the user, a kept session can be continued, and a session that is not kept leaves nothing on the engine.
func TestRunInAContainer(t *testing.T) {
	t.Parallel()
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	d := newDesk(t, nil)
	beside := filepath.Join(d.dir, "..", "beside")
	d.server = llmtest.New(t, llmtest.Script(
		sh("cat file; echo changed > file; ls /workspace/.. "+beside), done("First."),
		sh("mkdir new; cat file > new/copy; ls -A | cat"), done("Second."),
		sh("cat new/copy; ls -A | cat"), done("Third."),
	))
	for _, path := range []string{filepath.Join(d.dir, "file"), beside} {
		if err := os.WriteFile(path, []byte("of the user\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want string, args ...string) string {
		t.Helper()
		args = append(append([]string{"run"}, args...), append(withSandbox(t, "docker"), "--docker-host", host, "--sandbox-image", image, "--sandbox-pull", "never", "--json")...)
		code, out, errs := d.run(args...)
		if code != cli.ExitDone || !strings.Contains(out, want) {
			t.Fatalf("exit code %d, want %q in\n%s%s", code, want, out, errs)
		}
		return out
	}
	t.Cleanup(func() { removeSandboxes(t, inFolder(t, d.dir)) })
	out := run("of the user", "go")
	if !strings.Contains(out, beside+": No such file") {
		t.Errorf("the folder beside is visible: %s", out)
	}
	if left := inFolder(t, d.dir); len(left) > 0 {
		t.Errorf("left on the engine: %v", left)
	}
	run(`file\nnew`, "more", "--keep")
	run(`changed\nfile\nnew`, "even more", "--continue")
	for _, name := range []string{"file", "new", "new/copy"} {
		info, err := os.Stat(filepath.Join(d.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

// inFolder returns the IDs of the sandboxes that work in a folder.
func inFolder(t *testing.T, dir string) (ids []string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := dockertest.Client(t).VolumeList(context.Background(), client.VolumeListOptions{Filters: make(client.Filters).Add("label", "deckhand.folder="+dir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found.Items {
		ids = append(ids, v.Labels["deckhand.id"])
	}
	return ids
}

// removeSandboxes removes what a kept session leaves on the engine.
func removeSandboxes(t *testing.T, ids []string) {
	engine, ctx := dockertest.Client(t), context.Background()
	for _, id := range ids {
		for _, label := range []string{"deckhand.id", "deckhand.helper", "deckhand.checkpoints"} {
			of := make(client.Filters).Add("label", label+"="+id)
			containers, _ := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: of})
			for _, c := range containers.Items {
				_, _ = engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			}
			volumes, _ := engine.VolumeList(ctx, client.VolumeListOptions{Filters: of})
			for _, v := range volumes.Items {
				_, _ = engine.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
			}
		}
	}
}
