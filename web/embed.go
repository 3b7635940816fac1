// Package web holds the page that people see in a browser: its source, in TypeScript
// and Svelte, and what make has built from it.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var built embed.FS

//go:embed package-lock.json
var lock []byte

// Lock is npm's list of all packages that the page is made of and built with.
func Lock() []byte { return lock }

// Files is the page as it was built: index.html and what it loads. Without index.html it
// was not built, as in a checkout that only ever saw the Go tools.
func Files() fs.FS {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return files
}
