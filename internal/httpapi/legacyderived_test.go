//go:build legacydoc

package httpapi

import (
	"os"
	"reflect"
	"testing"
)

// The table says what the document says. Not everybody has it, and it is not ours to pass
// on, so this is for who changes the table: go test -tags legacydoc.
func TestLegacyTableIsDerived(t *testing.T) {
	path := os.Getenv(legacyDocument)
	if path == "" {
		t.Fatalf("%s does not name a copy of the older server's document", legacyDocument)
	}
	want := published(t, path)
	if *update {
		if err := os.WriteFile(legacyTable, compact(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(legacyDocument, "")
	got := legacyOperations(t)
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("the table has\n%s\nthe document\n%s", encoded(t, got[i]), encoded(t, want[i]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("the table has %d operations, the document %d", len(got), len(want))
	}
}
