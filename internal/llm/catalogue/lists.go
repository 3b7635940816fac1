package catalogue

import (
	"bytes"
	"compress/gzip"
	_ "embed"

	"charm.land/catwalk/pkg/catwalk"
	"github.com/go-json-experiment/json"
)

// packedLists are catwalk's model lists, compressed to a tenth of their size in the library. A test compares
// them with the library; run it with -update after updating the library.
//
//go:embed lists.json.gz
var packedLists []byte

// readLists decompresses the lists.
func readLists() []catwalk.Provider {
	var lists []catwalk.Provider
	z, err := gzip.NewReader(bytes.NewReader(packedLists))
	if err == nil {
		err = json.UnmarshalRead(z, &lists)
	}
	if err != nil {
		panic(err) // the file is part of the program
	}
	return lists
}
