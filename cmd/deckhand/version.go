package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"deckhand/internal/cli"
	"deckhand/internal/sbom"
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
	bill, err := sbom.New(version, info, web.Lock(), time.Now())
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(o.Stdout, "%s\n", text)
	}
	return err
}
