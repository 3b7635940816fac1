package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// DataFlags are those of commands on the data.
type DataFlags struct {
	DataDir     string `name:"data-dir" env:"DECKHAND_DATA_DIR" default:"${data_dir}" placeholder:"DIR" help:"Data directory (default: ${default})."`
	DatabaseURL string `name:"database-url" env:"DECKHAND_DATABASE_URL" placeholder:"URL" help:"Database: sqlite:PATH. Default: deckhand.db in the data directory."`
}

// CheckDatabase checks the URL without opening the database.
func (c DataFlags) CheckDatabase() error {
	_, err := c.DatabasePath()
	return err
}

// DatabasePath turns the URL into a file.
func (c DataFlags) DatabasePath() (string, error) {
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
