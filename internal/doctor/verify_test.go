package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/advice"
)

// The fix for the data directory of another user names root by no number.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	for uid, want := range map[int]string{0: ": sudo deckhand doctor --data-dir /data", 7: ": sudo -u '#7' deckhand doctor --data-dir /data"} {
		if _, fix := advice.Split(otherUser(uid, "/data")); !strings.HasSuffix(fix, want) {
			t.Errorf("user %d: %q", uid, fix)
		}
	}
}

// A second repair keeps what the first one has cut off.
func TestCutOffEventsAreKept(t *testing.T) {
	t.Parallel()
	v := Verification{ID: "one", DataDir: t.TempDir()}
	for _, text := range []string{"first", "second"} {
		path, err := v.save([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s has %q, %v", path, b, err)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(v.DataDir, "cut-off-one*.jsonl")); len(all) != 2 {
		t.Errorf("there are %v", all)
	}
}
