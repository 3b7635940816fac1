package catalogue

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"

	"charm.land/catwalk/pkg/catwalk"
)

// packedLists are catwalk's lists of models, compressed: in the library they are ten times as large. A test
// compares the two; run it with -update after a new version of the library.
//
//go:embed lists.json.gz
var packedLists []byte

// readLists unpacks the lists.
func readLists() []catwalk.Provider {
	var lists []catwalk.Provider
	z, err := gzip.NewReader(bytes.NewReader(packedLists))
	if err == nil {
		err = json.NewDecoder(z).Decode(&lists)
	}
	if err != nil {
		panic(err) // the file is part of the program
	}
	return lists
}
