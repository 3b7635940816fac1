package pull

import (
	"testing"

	"github.com/moby/moby/api/types/jsonstream"
)

func TestCount(t *testing.T) {
	c := count{name: "some/image"}
	for _, step := range []struct {
		id, status     string
		current, total int64
		want           string
	}{
		{"1", "Pulling from some/image", 0, 0, "Pulling some/image"},
		{"aa", "Pulling fs layer", 0, 0, "Pulling some/image: 0 of 1 layers"},
		{"bb", "Already exists", 0, 0, "Pulling some/image: 1 of 2 layers"},
		{"cc", "Waiting", 0, 0, "Pulling some/image: 1 of 3 layers"},
		{"aa", "Downloading", 45_200_000, 120_000_000, "Pulling some/image: 1 of 3 layers, 45 of 120 MB"},
		{"cc", "Downloading", 100, 200_000, "Pulling some/image: 1 of 3 layers, 45 of 120 MB"},
		{"cc", "Download complete", 0, 0, "Pulling some/image: 1 of 3 layers, 45 of 120 MB"},
		{"cc", "Extracting", 7, 200_000, "Pulling some/image: 1 of 3 layers, 45 of 120 MB"},
		{"cc", "Pull complete", 0, 0, "Pulling some/image: 2 of 3 layers, 45 of 120 MB"},
		{"aa", "Pull complete", 0, 0, "Pulling some/image: 3 of 3 layers, 120 of 120 MB"},
		{"", "Status: Downloaded newer image", 0, 0, "Pulling some/image: 3 of 3 layers, 120 of 120 MB"},
	} {
		c.add(jsonstream.Message{ID: step.id, Status: step.status, Progress: &jsonstream.Progress{Current: step.current, Total: step.total}})
		if got := c.String(); got != step.want {
			t.Errorf("after %s of %s: %q, want %q", step.status, step.id, got, step.want)
		}
	}
}
