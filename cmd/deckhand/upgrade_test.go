package main

import (
	"os"
	"strings"
	"sync"
	"testing"

	"deckhand/client"
)

// During a rolling restart, servers of an older version and of this one work side by side on one database: each continues what the
// other began, and both show the same. A server of the older version can come back. make upgrade-test builds the older program.
func TestUpgradeSideBySide(t *testing.T) {
	t.Parallel()
	older := os.Getenv("DECKHAND_OLDER_PROGRAM")
	if older == "" {
		t.Skip("SKIPPED: run make upgrade-test")
	}
	f := newFleet(t, 0)
	f.program = older
	first, second := f.add(readable(t)), f.add(readable(t))
	first.demo("scripted/demo")
	var ids []string
	last := map[string]int64{}
	// each sends a message to every conversation through one server and follows the reply on another. It sends all of them at once,
	// because versions that do not understand each other's messages notice changes only after a while.
	each := func(asked, followed *box, text string) {
		t.Helper()
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, id := range ids {
			mu.Lock()
			from := last[id]
			mu.Unlock()
			if err := asked.client.Say(t.Context(), id, text, id+strings.ReplaceAll(text, " ", "-")); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				seen := followed.follow(id, from, agentIs("awaiting_user_input"))
				mu.Lock()
				defer mu.Unlock()
				last[id] = seen[len(seen)-1].ID
				if shown := describe(seen); strings.Count(shown, `"source":"agent","message":"[scripted demo model] You said: \"`+text+`\"`) != 1 {
					t.Errorf("%s was not answered once:\n%s", text, shown)
				}
			})
		}
		all.Wait()
	}
	begin := func(on *box, text string) {
		t.Helper()
		id := on.create(text)
		seen := on.follow(id, 0, agentIs("awaiting_user_input"))
		ids, last[id] = append(ids, id), seen[len(seen)-1].ID
	}
	begin(first, "Begun by the older version")
	begin(second, "Begun by the older version, too")

	f.end(0)
	f.program = ""
	upgraded := f.add(first.dir)
	begin(upgraded, "Begun by the newer version")
	each(second, upgraded, "To the older")
	each(upgraded, second, "To the newer")

	f.end(1)
	f.program = older
	back := f.add(second.dir)
	each(back, upgraded, "To the older again")
	each(upgraded, back, "To the newer again")

	f.end(3)
	f.program = ""
	final := f.add(second.dir)
	each(final, upgraded, "To the newer alone")
	for _, id := range ids {
		a, b := upgraded.follow(id, 0, at(last[id])), final.follow(id, 0, at(last[id]))
		if describe(a) != describe(b) || !inOrder(a) {
			t.Errorf("%s: one server shows\n%s\nthe other\n%s", id, describe(a), describe(b))
		}
	}
}

// at matches the event with this ID.
func at(id int64) func(client.LegacyItem) bool {
	return func(it client.LegacyItem) bool { return it.ID == id }
}
