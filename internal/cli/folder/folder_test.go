package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/datadir"
)

func TestHomes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if a, b := Of(data, "/x/app"), Of(data, "/y/app"); a.Dir == b.Dir {
		t.Error("two folders share a home")
	}
	if h := Of(data, "/"); filepath.Dir(h.Dir) != filepath.Join(data, "folders") {
		t.Errorf("%+v", h)
	}
	if all := All(data); len(all) != 0 {
		t.Errorf("%v", all)
	}
	for i, folder := range []string{"/x/old", "/x/new one", "/x/日本"} {
		h := Of(data, folder)
		if err := h.Create(); err != nil {
			t.Fatal(err)
		}
		file, at := filepath.Join(h.Dir, "deckhand.db"), time.Now().Add(time.Duration(i)*time.Hour)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	all := All(data)
	if len(all) != 3 || all[0].Folder != "/x/日本" || all[2].Folder != "/x/old" {
		t.Errorf("%v", all)
	}
	read := 0
	r := &Reader{Stored: func(_ context.Context, dir string) ([]api.Conversation, error) {
		read++
		return []api.Conversation{{ConversationID: filepath.Base(dir)}}, nil
	}}
	if got := r.List(t.Context(), data, 2); len(got) != 2 || read != 2 || got[0].Folder == "" {
		t.Errorf("%d read, %v", read, got)
	}
}

// A session whose process died is not shown as running, but one that a process without an API runs is.
func TestInterruptedSessions(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h := Of(data, t.TempDir())
	if err := h.Create(); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Stored: func(context.Context, string) ([]api.Conversation, error) {
		return []api.Conversation{{ConversationID: "a", Status: "RUNNING", AgentState: "running"}, {ConversationID: "b", Status: "RUNNING", AgentState: "finished"}}, nil
	}}
	unlock, err := datadir.Lock(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.List(t.Context(), data, 2); len(got) != 2 || got[0].Status != "RUNNING" {
		t.Errorf("while a process runs: %+v", got)
	}
	unlock()
	if got := r.List(t.Context(), data, 2); len(got) != 2 || got[0].Status != "STOPPED" || got[1].Status != "RUNNING" {
		t.Errorf("%+v", got)
	}
}

// A session that cannot be continued in a folder is explained: none is there, or it belongs to another folder.
func TestCheck(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	here, there := Of(data, "/x/here"), Of(data, "/x/my app")
	if err := there.Create(); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Stored: func(_ context.Context, dir string) ([]api.Conversation, error) {
		if dir != there.Dir {
			return nil, nil
		}
		return []api.Conversation{{ConversationID: "abcdef12"}}, nil
	}}
	for _, c := range []struct {
		home     Home
		id, want string
	}{
		{here, "", "there is no session in this folder yet"},
		{here, "abc", "session abc belongs to the folder /x/my app; open it with: deckhand --dir '/x/my app' --resume abc"},
		{here, "zzz", "session zzz not found"},
		{there, "", ""},
		{there, "abc", ""},
	} {
		err := r.Check(t.Context(), data, c.home, c.id)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s in %s: %v instead of %q", c.id, c.home.Folder, err, c.want)
		}
	}
}

// Who cannot use a folder because a task runs there is told of the folder, not of its home.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unlock, err := Lock(dir, "/work")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Lock(dir, "/work"); err == nil || !strings.Contains(err.Error(), "running in the folder /work: wait") {
		t.Errorf("%v", err)
	}
	if _, err := Lock(dir, ""); !errors.As(err, new(datadir.InUseError)) {
		t.Errorf("without a folder: %v", err)
	}
}
