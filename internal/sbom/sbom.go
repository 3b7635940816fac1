// Package sbom writes the software bill of materials of the program in SPDX 2.3.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that are used here.
type (
	Document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      Creation       `json:"creationInfo"`
		Packages      []Package      `json:"packages"`
		Relationships []Relationship `json:"relationships"`
	}
	Creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	Package struct {
		Name      string     `json:"name"`
		ID        string     `json:"SPDXID"`
		Version   string     `json:"versionInfo"`
		Location  string     `json:"downloadLocation"`
		Analyzed  bool       `json:"filesAnalyzed"`
		Concluded string     `json:"licenseConcluded"`
		Declared  string     `json:"licenseDeclared"`
		Copyright string     `json:"copyrightText"`
		Refs      []External `json:"externalRefs,omitempty"`
	}
	External struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	Relationship struct {
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

// Print writes the document of the running binary, or of the binary in a file if one is given, as JSON.
// The time is SOURCE_DATE_EPOCH, if set, so that builds are reproducible.
func Print(w io.Writer, version string, lock []byte, file string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without module information")
	}
	var err error
	if file != "" {
		if info, err = buildinfo.ReadFile(file); err != nil {
			return err
		}
	}
	now := time.Now()
	if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		now = time.Unix(epoch, 0)
	}
	bill, err := New(version, info, lock, now)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

// New lists the Go modules that are linked into a version of the program, with the Go release that made it, and the
// npm packages that are part of its web page, by their lock file.
func New(version string, info *debug.BuildInfo, lock []byte, now time.Time) (*Document, error) {
	bill := &Document{Version: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: "deckhand-" + version,
		Creation: Creation{Created: now.UTC().Format(time.RFC3339), Creators: []string{"Tool: deckhand-" + version}}}
	bill.Packages = []Package{{Name: "deckhand", ID: program, Version: version, Location: unknown, Concluded: unknown, Declared: "Apache-2.0", Copyright: unknown}}
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

func (b *Document) relate(from, how, to string) {
	b.Relationships = append(b.Relationships, Relationship{from, how, to})
}

// add adds something that the program contains.
func (b *Document) add(kind, name, version string) {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, fmt.Sprintf("SPDXRef-Package-%s-%s-%s", kind, name, version))
	locator := "pkg:" + kind + "/" + strings.ReplaceAll(name, "@", "%40") + "@" + version
	b.Packages = append(b.Packages, Package{Name: name, ID: id, Version: version, Location: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		Refs: []External{{"PACKAGE-MANAGER", "purl", locator}}})
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
