package catalogue

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the lists of models anew, from the library")

// The packed lists are those of the library.
func TestListsAreCurrent(t *testing.T) {
	want := embedded.GetAll()
	if *update {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if err = json.NewEncoder(z).Encode(want); err == nil {
			err = z.Close()
		}
		if err == nil {
			err = os.WriteFile("lists.json.gz", b.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		packedLists = b.Bytes()
	}
	if diff := cmp.Diff(want, readLists()); diff != "" {
		t.Errorf("the packed lists differ from the library's; run this test with -update:\n%.2000s", diff)
	}
}
