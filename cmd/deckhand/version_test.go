package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/sbom"
)

// The bill of materials names every module that this program is linked with, and what is in its page.
func TestSBOM(t *testing.T) {
	t.Parallel()
	code, out, errs := command(t, "version", "--sbom")
	var bill sbom.Document
	if err := json.Unmarshal([]byte(out), &bill); code != 0 || err != nil {
		t.Fatalf("%d %s %v", code, errs, err)
	}
	if bill.Version != "SPDX-2.3" || bill.License != "CC0-1.0" || bill.Namespace == "" || bill.Creation.Created == "" || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("%+v", bill)
	}
	ids, purls := map[string]bool{}, ""
	for _, p := range bill.Packages {
		if ids[p.ID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.ID) || p.Version == "" || p.Location == "" {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for _, r := range p.Refs {
			purls += r.Locator + "\n"
		}
	}
	for _, r := range bill.Relationships {
		if r.To != "SPDXRef-Package-deckhand" && !ids[r.To] {
			t.Errorf("%+v leads nowhere", r)
		}
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^\s*(github.com/alecthomas/kong|github.com/danielgtaylor/huma/v2) (\S+)`)
	for _, m := range version.FindAllStringSubmatch(string(mod), -1) {
		if !strings.Contains(purls, "pkg:golang/"+m[1]+"@"+m[2]+"\n") {
			t.Errorf("%s %s is not in it", m[1], m[2])
		}
	}
	for _, want := range []string{"pkg:golang/stdlib@1.", "pkg:npm/svelte@", "pkg:npm/dompurify@", "pkg:npm/%40codemirror/view@"} {
		if !strings.Contains(purls, want) {
			t.Errorf("%s is not in it", want)
		}
	}
}
