package forge

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"deckhand/internal/gitprovider"
)

var update = flag.Bool("update", false, "write the web page's list of providers anew")

// pageFile is what the web page knows of providers.
const pageFile = "../../../web/src/lib/providers.json"

type onPage struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Host     string `json:"host"`
	Triggers bool   `json:"triggers"`
	// Request is what a request to merge is called, up to its number.
	Request string `json:"request"`
}

// The web page has the same list of providers, with those of any kind last.
func TestPageKnowsTheProviders(t *testing.T) {
	var list []onPage
	for _, generic := range []bool{false, true} {
		for _, a := range adapters {
			if a.Generic == generic {
				request, _, _ := strings.Cut(gitprovider.RequestName(a.Name, "", 0), "0")
				list = append(list, onPage{a.Name, a.Title, a.Host, a.Webhook != nil, request})
			}
		}
	}
	want, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(pageFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pageFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("web/src/lib/providers.json is not what the descriptors say (%v); run this test with -update", err)
	}
}
