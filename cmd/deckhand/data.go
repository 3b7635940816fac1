package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// databasePath turns the URL into a file.
func (c common) databasePath() (string, error) {
	url := c.DatabaseURL
	switch {
	case url == "":
		return filepath.Join(c.DataDir, "deckhand.db"), nil
	case strings.HasPrefix(url, "sqlite:"):
		path := strings.TrimPrefix(strings.TrimPrefix(url, "sqlite:"), "//")
		if path == "" {
			return "", errors.New("--database-url sqlite: needs a path after the colon")
		}
		return path, nil
	}
	scheme, _, _ := strings.Cut(url, ":")
	return "", fmt.Errorf("--database-url: %s: is not supported; this version supports only SQLite: use sqlite:PATH", scheme)
}
