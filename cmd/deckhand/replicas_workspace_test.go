package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/client"
	"deckhand/internal/store/postgres/pgtest"
)

// home is the server whose machine has the workspace of a conversation, and away another one.
func (f *fleet) home(id string) (home, away int) {
	f.t.Helper()
	for i, b := range f.boxes {
		if _, err := os.Stat(filepath.Join(b.dir, "boxes", id)); err == nil {
			return i, (i + 1) % len(f.boxes)
		}
	}
	f.t.Fatal("no server has the workspace")
	return 0, 0
}

// typed opens a terminal, runs a command in it and waits for what it prints.
func (b *box) typed(id, command, want string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, b.base+"/api/conversations/"+id+"/terminal", &websocket.DialOptions{HTTPHeader: http.Header{"X-Session-Api-Key": {b.key}}})
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageBinary, []byte(command+"\n")); err != nil {
		b.t.Fatal(err)
	}
	var seen strings.Builder
	for !strings.Contains(seen.String(), want) {
		_, data, err := conn.Read(ctx)
		if err != nil {
			b.t.Fatalf("%v after %q", err, seen.String())
		}
		seen.Write(data)
	}
}

// A workspace stays on its machine, and every server can be asked for what is in it: files, terminals, ports. When the
// machine is gone, the conversation says so, and it goes on when the machine returns.
func TestReplicaWorkspaces(t *testing.T) {
	t.Parallel()
	page := webServer(t)
	f := newFleet(t, 2, withSandbox(t, "local")...)
	f.boxes[0].demo("scripted/demo")
	id := f.boxes[0].create("$ echo hello from inside > index.html; " + page + "; echo it is served")
	f.boxes[1].said(id, 0, "it is served")
	at, other := f.home(id)
	home, away := f.boxes[at], f.boxes[other]

	if status, text, _ := away.raw(http.MethodGet, "/api/conversations/"+id+"/select-file?file=index.html", ""); status != http.StatusOK || !strings.Contains(text, "hello from inside") {
		t.Errorf("a file: %d %s", status, text)
	}
	away.upload(id, map[string]string{"up.txt": "uploaded elsewhere"})
	if text, err := away.client.ReadFile(t.Context(), id, "up.txt"); err != nil || text != "uploaded elsewhere" {
		t.Errorf("the uploaded file: %q %v", text, err)
	}
	away.typed(id, "cat up.txt; echo sum-$((42 * 42))", "sum-1764")
	label := home.webHost(id, 8000)
	u, _ := url.Parse(away.base)
	label = strings.SplitN(label, ":", 2)[0] + ":" + u.Port()
	for range 2 {
		if status, text, _ := away.raw(http.MethodGet, "/index.html", "", "Host", label); status != http.StatusOK || !strings.Contains(text, "hello from inside") {
			t.Errorf("a port: %d %s", status, text)
		}
	}
	if status, _, _ := away.raw(http.MethodGet, "/index.html", "", "Host", "x"+label[1:]); status != http.StatusNotFound {
		t.Errorf("a port that is not there: %d", status)
	}
	// Headers that only servers may send are not believed.
	if status, text, _ := away.raw(http.MethodGet, "/api/conversations/"+id+"/select-file?file=index.html", "", "Deckhand-Routed", "x", "Deckhand-Client", "1.2.3.4"); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := away.raw(http.MethodGet, "/api/conversations/"+id+"/select-file?file=index.html", "", "X-Session-API-Key", ""); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
	// Nobody else gets in where servers talk to each other.
	strangersAreRefused(t, home)

	if err := away.client.Say(t.Context(), id, "$ cat up.txt", "k1"); err != nil {
		t.Fatal(err)
	}
	home.said(id, 0, `"content":"uploaded elsewhere`)
	f.kill(at)
	notRunning := "in the data directory " + home.dir + ". The server with this data directory is not running." // both have the same host
	if err := away.client.Say(t.Context(), id, "$ echo back >> up.txt; cat up.txt", "k2"); err != nil {
		t.Fatal(err)
	}
	away.follow(id, 0, func(it client.LegacyItem) bool {
		return strings.Contains(string(it.Raw), notRunning)
	})
	away.until("the workspace is missing", func() bool {
		status, text, _ := away.raw(http.MethodGet, "/api/conversations/"+id+"/select-file?file=index.html", "")
		return status == http.StatusServiceUnavailable && strings.Contains(text, notRunning)
	})
	for _, path := range []string{"/api/conversations/" + id, "/api/conversations"} {
		if _, text, _ := away.raw(http.MethodGet, path, ""); !strings.Contains(text, `"runtime_status":"STATUS$ERROR_RUNTIME_DISCONNECTED"`) {
			t.Errorf("%s: %s", path, text)
		}
	}
	// Others are not held up.
	quick := away.create("$ echo alive")
	away.said(quick, 0, `"content":"alive`)

	back := f.add(home.dir, withSandbox(t, "local")...)
	away.said(id, 0, `"content":"uploaded elsewhereback`)
	if _, text, _ := away.raw(http.MethodGet, "/api/conversations/"+id, ""); !strings.Contains(text, `"runtime_status":"STATUS$READY"`) {
		t.Errorf("after its return: %s", text)
	}
	back.remove(id)
	away.remove(quick)
}

// When the database was away for longer than a lease, the first server that reaches it again sees no other. It does not write into the
// conversations of the others that their workspaces are missing.
func TestReplicasAfterOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	direct, relays := f.database, []*pgtest.Relay{f.postgres.Relay(t), f.postgres.Relay(t)}
	for _, r := range relays {
		f.database = r.Address(direct)
		f.add(readable(t), withSandbox(t, "local")...)
	}
	f.boxes[0].demo("scripted/demo")
	id := f.boxes[0].create("$ echo kept-text > kept; echo written")
	f.boxes[1].said(id, 0, "written")
	at, other := f.home(id)
	home, away := f.boxes[at], f.boxes[other]
	home.follow(id, 0, agentIs("awaiting_user_input"))

	for _, r := range relays {
		r.Pause()
	}
	live := func(n int) func() bool {
		return func() bool {
			db, err := pgconn.Connect(t.Context(), direct)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close(t.Context())
			res := db.ExecParams(t.Context(), "SELECT FROM deckhand.members WHERE expires > clock_timestamp()", nil, nil, nil, nil).Read()
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			return len(res.Rows) == n
		}
	}
	away.until("all leases have ended", live(0))
	relays[other].Resume()
	away.until("one server has a lease again", live(1))
	if err := away.client.Say(t.Context(), id, "$ echo still-$(cat kept)", ""); err != nil {
		t.Fatal(err)
	}
	away.until("the workspace is not available yet", func() bool {
		status, text, _ := away.raw(http.MethodGet, "/api/conversations/"+id+"/select-file?file=kept", "")
		if strings.Contains(text, "is not running") {
			t.Errorf("the other server is said to have ended: %s", text)
		}
		return status == http.StatusServiceUnavailable && strings.Contains(text, "has just connected to the database")
	})
	relays[at].Resume()
	all := home.follow(id, 0, func(it client.LegacyItem) bool {
		return it.Event != nil && it.Event.Observation == "run" && strings.Contains(string(it.Raw), "still-kept-text")
	})
	if text := describe(all); strings.Contains(text, "ERROR_RUNTIME_DISCONNECTED") || strings.Contains(text, "The workspace of this conversation") {
		t.Errorf("the workspace was said to be missing:\n%s", text)
	}

	// A server that does not return is noticed also by one that has just started.
	f.kill(at)
	f.kill(other)
	f.database = direct
	back := f.add(away.dir, withSandbox(t, "local")...)
	if err := back.client.Say(t.Context(), id, "$ cat kept", ""); err != nil {
		t.Fatal(err)
	}
	back.follow(id, 0, func(it client.LegacyItem) bool {
		return strings.Contains(string(it.Raw), "in the data directory "+home.dir+". The server with this data directory is not running.")
	})
	again := f.add(home.dir, withSandbox(t, "local")...)
	again.said(id, 0, `"content":"kept-text`)
	again.remove(id)
}

// strangersAreRefused checks that the address for other servers wants a certificate.
func strangersAreRefused(t *testing.T, b *box) {
	t.Helper()
	_, after, _ := strings.Cut(b.logs.String(), "address=")
	address, _, _ := strings.Cut(after, " ")
	for _, scheme := range []string{"http://", "https://"} {
		res, err := http.Get(scheme + address + "/api/conversations")
		if err == nil {
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode < http.StatusBadRequest {
				t.Errorf("%s is let in: %s", scheme, text)
			}
		}
	}
}

// A conversation with files can be imported on any server: the workspace is made where the import is answered.
func TestReplicasImport(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	a, b := f.boxes[0], f.boxes[1]
	a.demo("scripted/demo")
	id := a.create("$ echo kept-text > kept; echo done-it")
	a.said(id, 0, "done-it")
	a.follow(id, 0, agentIs("awaiting_user_input"))
	var file bytes.Buffer
	if err := b.client.Export(t.Context(), id, &file); err != nil {
		t.Fatal(err)
	}
	made, err := b.client.ImportConversation(t.Context(), &file)
	if err != nil {
		t.Fatal(err)
	}
	seen := a.follow(made.ConversationID, 0, agentIs("stopped"))
	if err := a.client.Say(t.Context(), made.ConversationID, "$ cat kept", ""); err != nil {
		t.Fatal(err)
	}
	a.said(made.ConversationID, seen[len(seen)-1].ID, "kept-text")
}

// A server that only answers requests forwards imports to one that runs agents. Without such a server, it refuses them. Conversations with
// a workspace on it say so.
func TestImportWithRoles(t *testing.T) {
	t.Parallel()
	local := withSandbox(t, "local")
	onlyAPI := append([]string{"--roles", "api"}, local...)
	f := newFleet(t, 1, local...)
	worker := f.boxes[0]
	worker.demo("scripted/demo")
	front := f.add(readable(t), onlyAPI...)
	id := front.create("$ echo kept-text > kept; echo done-it")
	front.follow(id, 0, agentIs("awaiting_user_input"))
	var file bytes.Buffer
	if err := front.client.Export(t.Context(), id, &file); err != nil {
		t.Fatal(err)
	}
	made, err := front.client.ImportConversation(t.Context(), bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	seen := front.follow(made.ConversationID, 0, agentIs("stopped"))
	if err := front.client.Say(t.Context(), made.ConversationID, "$ cat kept", ""); err != nil {
		t.Fatal(err)
	}
	front.said(made.ConversationID, seen[len(seen)-1].ID, "kept-text")
	if at, _ := f.home(made.ConversationID); at != 0 {
		t.Errorf("the workspace is on server %d", at)
	}

	f.kill(0)
	f.add(worker.dir, onlyAPI...)
	front.until("imports are refused", func() bool {
		_, err := front.client.ImportConversation(t.Context(), bytes.NewReader(file.Bytes()))
		return statusOf(err) == http.StatusServiceUnavailable && strings.Contains(err.Error(), "--roles api,worker")
	})
	if err := front.client.Say(t.Context(), made.ConversationID, "$ echo still-$(cat kept)", ""); err != nil {
		t.Fatal(err)
	}
	front.follow(made.ConversationID, 0, func(it client.LegacyItem) bool {
		return strings.Contains(string(it.Raw), "in the data directory "+worker.dir+". The server with this data directory does not run agents.")
	})
	f.kill(2)
	back := f.add(worker.dir, local...)
	front.said(made.ConversationID, 0, "still-kept-text")
	back.remove(id, made.ConversationID) // for the others, the killed server is there until its lease ends
}
