package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	deckhand "deckhand/client"
	"deckhand/internal/sandbox/docker/dockertest"
)

// A server is killed, and its data directory goes, while commands run in containers. The servers that reach the same engine, at other
// addresses, continue: each command runs once and has one result, and who follows on another server misses nothing.
func TestReplicaContainers(t *testing.T) {
	t.Parallel()
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	f := newFleet(t, 0)
	add := func(host string) *box {
		return f.add(readable(t), append(withSandbox(t, "docker"), "--docker-host", host, "--sandbox-image", image, "--sandbox-pull", "never")...)
	}
	first := add(host)
	first.demo("scripted/demo")
	const n = 12
	ids := make([]string, n)
	t.Cleanup(func() { removeSandboxes(t, ids) })
	for i := range ids { // all of them on the server that is killed
		ids[i] = first.create(fmt.Sprintf("$ echo mark %d >> marks; echo begun; while [ ! -e go ]; do echo .; sleep 1; done; cat marks; echo ended", i))
	}
	for _, id := range ids {
		first.begun(id)
	}
	var others []*box
	for range 2 {
		others = append(others, add(alias(t, host)))
	}
	seen, took := make([][]deckhand.LegacyItem, n), make([]time.Duration, n)
	var following sync.WaitGroup
	killed := make(chan time.Time)
	var at time.Time
	for i, id := range ids {
		following.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for it, err := range others[i%2].client.FollowLegacy(ctx, id, 0) {
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				if it.ID > 0 {
					seen[i] = append(seen[i], it)
				}
				if agentIs("awaiting_user_input")(it) {
					<-killed
					took[i] = time.Since(at)
					return
				}
			}
		})
	}
	f.kill(0)
	at = time.Now()
	close(killed)
	if err := os.RemoveAll(first.dir); err != nil {
		t.Fatal(err)
	}
	served := make([]time.Duration, n)
	for i, id := range ids { // the command ends when the server that continues has put a file there
		following.Go(func() {
			body, kind := uploadForm(t, map[string]string{"go": "now"})
			others[(i+1)%2].until("the workspace can be used again", func() bool {
				code, _, _ := others[(i+1)%2].raw(http.MethodPost, "/api/conversations/"+id+"/upload-files", body, "Content-Type", kind)
				return code == http.StatusOK
			})
			served[i] = time.Since(at)
		})
	}
	following.Wait()
	for i, id := range ids {
		text := describe(seen[i])
		results := 0
		for _, it := range seen[i] {
			if it.Event != nil && it.Event.Observation == "run" && strings.Contains(string(it.Raw), fmt.Sprintf(`\nmark %d\nended`, i)) {
				results++
			}
		}
		if results != 1 || strings.Count(text, `"observation":"run"`) != 1 || !inOrder(seen[i]) {
			t.Errorf("%s does not have one result of its command:\n%s", id, text)
		}
		for _, b := range others {
			if marks, err := b.client.ReadFile(t.Context(), id, "marks"); err != nil || marks != fmt.Sprintf("mark %d\n", i) {
				t.Errorf("%s has the marks %q: %v", id, marks, err)
			}
		}
		if again := others[(i+1)%2].follow(id, 0, agentIs("awaiting_user_input")); describe(again) != text {
			t.Errorf("%s: one server shows\n%s\nthe other\n%s", id, text, describe(again))
		}
	}
	for what, d := range map[string][]time.Duration{"workspaces served again": served, "commands ended": took} {
		slices.Sort(d)
		t.Logf("%s after the kill: median %v, worst %v", what, d[n/2].Round(time.Millisecond), d[n-1].Round(time.Millisecond))
	}

	// The proxy of a sandbox that was taken over is served, too.
	if err := others[0].client.Say(t.Context(), ids[0], `$ printf 'GET http://nobody.invalid/ HTTP/1.0\r\n\r\n' | nc 127.0.0.1 3128; echo asked`, "k0"); err != nil {
		t.Fatal(err)
	}
	if said := others[1].said(ids[0], 0, `\nasked`); !strings.Contains(said, `"content":"HTTP/1.`) {
		t.Errorf("the proxy: %s", said)
	}

	// A sandbox that was stopped is started again by the last server.
	others[0].post("/api/conversations/"+ids[1]+"/stop", "{}")
	others[1].until("the container ends", func() bool { return !containerRuns(t, ids[1]) })
	f.kill(1)
	if err := others[1].client.Say(t.Context(), ids[1], "$ cat marks; echo again", "k1"); err != nil {
		t.Fatal(err)
	}
	if status, text, _ := others[1].raw(http.MethodPost, "/api/conversations/"+ids[1]+"/start", "{}"); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, text)
	}
	others[1].said(ids[1], 0, `"content":"mark 1\nagain`)
	for _, id := range ids {
		others[1].until("the conversation can be deleted", func() bool {
			code, _, _ := others[1].raw(http.MethodDelete, "/api/conversations/"+id, "")
			return code == http.StatusOK
		})
	}
	others[1].until("the containers go", func() bool {
		left := dockertest.Sandboxes(t)
		return !slices.ContainsFunc(ids, func(id string) bool { return left[id] })
	})
}

// alias is another address of an engine, if it has a socket.
func alias(t *testing.T, host string) string {
	t.Helper()
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return host
	}
	dir, err := os.MkdirTemp("", "e") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	link := filepath.Join(dir, "s")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	return "unix://" + link
}

// containerRuns reports whether the container of a sandbox runs.
func containerRuns(t *testing.T, id string) bool {
	t.Helper()
	found, err := dockertest.Client(t).ContainerList(t.Context(), client.ContainerListOptions{Filters: make(client.Filters).Add("label", "deckhand.id="+id)})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Items) > 0
}
