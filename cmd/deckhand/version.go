package main

import (
	"fmt"

	"deckhand/internal/cli"
	"deckhand/internal/sbom"
	"deckhand/web"
)

// versionCmd is deckhand version.
type versionCmd struct {
	SBOM bool   `name:"sbom" help:"Print the software bill of materials in SPDX 2.3 (JSON)."`
	Of   string `name:"of" hidden:"" placeholder:"FILE" help:"Binary whose modules to list. Must have the same version. Default: this binary."`
}

// Run prints the version, or the bill of materials.
func (c versionCmd) Run(o *cli.Output) error {
	if c.SBOM {
		return sbom.Print(o.Stdout, version, web.Lock(), c.Of)
	}
	_, err := fmt.Fprintln(o.Stdout, version)
	return err
}
