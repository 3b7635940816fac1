package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"deckhand/internal/cli"
	"deckhand/web"
)

// versionCmd is deckhand version.
type versionCmd struct {
	SBOM bool `name:"sbom" help:"Print the software bill of materials in SPDX 2.3 (JSON)."`
}

// Run prints the version, or the bill of materials.
func (c versionCmd) Run(o *cli.Output) error {
	if !c.SBOM {
		_, err := fmt.Fprintln(o.Stdout, version)
		return err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without module information")
	}
	bill, err := billOf(info, web.Lock(), time.Now())
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(o.Stdout, "%s\n", text)
	}
	return err
}

// The parts of SPDX 2.3 that are used here.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name      string         `json:"name"`
		ID        string         `json:"SPDXID"`
		Version   string         `json:"versionInfo"`
		Location  string         `json:"downloadLocation"`
		Analyzed  bool           `json:"filesAnalyzed"`
		Concluded string         `json:"licenseConcluded"`
		Declared  string         `json:"licenseDeclared"`
		Copyright string         `json:"copyrightText"`
		Refs      []spdxExternal `json:"externalRefs,omitempty"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	unknown  = "NOASSERTION"
	document = "SPDXRef-DOCUMENT"
	program  = "SPDXRef-Package-deckhand"
)

// billOf lists the Go modules that are linked into the program, with the Go release that made it, and the npm packages
// that are part of its web page.
func billOf(info *debug.BuildInfo, lock []byte, now time.Time) (*spdxDocument, error) {
	bill := &spdxDocument{Version: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: "deckhand-" + version,
		Creation: spdxCreation{Created: now.UTC().Format(time.RFC3339), Creators: []string{"Tool: deckhand-" + version}}}
	bill.Packages = []spdxPackage{{Name: "deckhand", ID: program, Version: version, Location: unknown, Concluded: unknown, Declared: "Apache-2.0", Copyright: unknown}}
	bill.relate(document, "DESCRIBES", program)
	bill.add("golang", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		bill.add("golang", m.Path, m.Version)
	}
	packages, err := pagePackages(lock)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		bill.add("npm", name, packages[name])
	}
	content, err := json.Marshal(bill.Packages)
	sum := sha256.Sum256(content)
	bill.Namespace = "urn:deckhand:sbom:" + hex.EncodeToString(sum[:])
	return bill, err
}

func (b *spdxDocument) relate(from, how, to string) {
	b.Relationships = append(b.Relationships, spdxRelationship{from, how, to})
}

// add adds something that the program contains.
func (b *spdxDocument) add(kind, name, version string) {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, fmt.Sprintf("SPDXRef-Package-%s-%s-%s", kind, name, version))
	locator := "pkg:" + kind + "/" + strings.ReplaceAll(name, "@", "%40") + "@" + version
	b.Packages = append(b.Packages, spdxPackage{Name: name, ID: id, Version: version, Location: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		Refs: []spdxExternal{{"PACKAGE-MANAGER", "purl", locator}}})
	b.relate(program, "CONTAINS", id)
}

// pagePackages are the npm packages whose code is in the page, with their versions. The framework is among them
// although npm counts it with the tools: what it compiles to needs its runtime.
func pagePackages(lock []byte) (map[string]string, error) {
	var in struct {
		Packages map[string]struct {
			Version string `json:"version"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &in); err != nil {
		return nil, fmt.Errorf("cannot read the package list of the web page: %w", err)
	}
	out := map[string]string{}
	for path, p := range in.Packages {
		const folder = "node_modules/"
		name := path
		if i := strings.LastIndex(path, folder); i >= 0 {
			name = path[i+len(folder):]
		}
		if path != "" && (!p.Dev || name == "svelte") {
			out[name] = p.Version
		}
	}
	return out, nil
}
