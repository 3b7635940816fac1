package knowledge

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// However many repositories there are, what is remembered of them is bounded.
func TestCacheIsBounded(t *testing.T) {
	l := &Library{}
	files := fstest.MapFS{"AGENTS.md": {}}
	info, err := files.Stat("AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	d := document{body: strings.Repeat("x", maxFile)}
	for i := range 2 * maxCache / maxFile {
		l.remember(fmt.Sprint(i), "AGENTS.md", info, d)
		l.remember(fmt.Sprint(i), "AGENTS.md", info, d) // takes the place of the first
	}
	sum := 0
	for k, c := range l.cache {
		sum += len(c.doc.body) + len(c.doc.wrong) + len(k.file) + 1024
	}
	if l.size > maxCache || l.size != sum || len(l.cache) < 2 {
		t.Errorf("%d bytes are kept in %d documents, counted as %d", sum, len(l.cache), l.size)
	}
}
