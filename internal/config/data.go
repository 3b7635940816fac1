package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"deckhand/internal/control"
)

// DataFlags are those of commands on the data.
type DataFlags struct {
	DataDir         string `name:"data-dir" env:"DECKHAND_DATA_DIR" default:"${data_dir}" placeholder:"DIR" help:"Data directory (default: ${default})."`
	DatabaseURL     string `name:"database-url" env:"DECKHAND_DATABASE_URL" placeholder:"URL" help:"Database: sqlite:PATH or postgres://USER@HOST/DATABASE. Default: deckhand.db in the data directory."`
	DatabaseURLFile string `name:"database-url-file" env:"DECKHAND_DATABASE_URL_FILE" placeholder:"FILE" help:"File with the database URL, for a URL with a password."`
}

// Database is the location of the database: a file, or the address of a database server.
type Database struct {
	// Path is the file, and Address that of a server, which may have a password. One is empty.
	Path, Address string
	// Dir is the data directory.
	Dir string
	// Flag is the flag with the URL, or with the file that contains it, for errors.
	Flag string
}

// String returns the path, or the address without its password.
func (d Database) String() string {
	if d.Address == "" {
		return d.Path
	}
	return redacted(d.Address)
}

// Missing reports whether the database is a file that does not exist. It is false for a database server.
func (d Database) Missing() bool {
	if d.Address != "" {
		return false
	}
	_, err := os.Stat(d.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// CheckDatabase checks the data directory, which may be missing, and the URL without opening the database.
func (c DataFlags) CheckDatabase() error {
	if info, err := os.Stat(c.DataDir); err == nil && !info.IsDir() {
		return fmt.Errorf("--data-dir: %s is not a folder", c.DataDir)
	}
	_, err := c.Database()
	return err
}

// Flags returns these flags for commands that are printed, so that they work when they are pasted into the same shell. A password is masked,
// unless the environment has it: then the flag is not needed.
func (c DataFlags) Flags() string {
	flags := "--data-dir " + shellWord(c.DataDir)
	url := redacted(c.DatabaseURL)
	switch {
	case c.DatabaseURLFile != "":
		flags += " --database-url-file " + shellWord(c.DatabaseURLFile)
	case url != c.DatabaseURL && os.Getenv("DECKHAND_DATABASE_URL") == c.DatabaseURL:
	case url != "":
		flags += " --database-url " + shellWord(url)
	}
	return flags
}

// bareWord is a word that a shell takes as it is.
var bareWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord returns a word as it is written in a shell.
func shellWord(word string) string {
	if bareWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Database returns the database that the flags name.
func (c DataFlags) Database() (Database, error) {
	return DatabaseOf("--database-url", c.DatabaseURL, c.DatabaseURLFile, c.DataDir)
}

// Served is Database for commands that work beside a server. If the server that is running on the data directory uses another database, it is
// an error: what the command changed would have no effect. A file that was left when an installation moved is an example.
func (c DataFlags) Served() (Database, error) {
	where, err := c.Database()
	if err != nil {
		return where, err
	}
	used, err := control.Ask(c.DataDir, control.Database)
	if err != nil { // no server is running
		return where, nil
	}
	file, isFile := strings.CutPrefix(used, "sqlite:")
	switch {
	case isFile && where.Address == "" && sameFile(file, where.Path),
		!isFile && where.Address != "",                  // the same server has many names
		!isFile && !strings.HasPrefix(used, "postgres"): // the server is older than this program and does not say
		return where, nil
	}
	return where, fmt.Errorf("the server running on %s uses the database %s, not %s: set --database-url, or --database-url-file, to the database of the server", c.DataDir, used, where)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Described is the location of the database for other processes, without a password: sqlite: and an absolute path, or the address.
func (d Database) Described() string {
	if d.Address != "" {
		return redacted(d.Address)
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return "sqlite:" + d.Path
	}
	return "sqlite:" + path
}

// DatabaseOf returns the database that a flag or the flag for a file with its value names. If both are empty, it is
// the file in the data directory. Errors do not contain the URL, which may have a password.
func DatabaseOf(flag, address, file, dir string) (Database, error) {
	inFile := flag + "-file"
	switch {
	case file != "" && address != "":
		return Database{}, fmt.Errorf("use either %s or %s, not both", flag, inFile)
	case file != "":
		b, err := os.ReadFile(file)
		if err != nil {
			return Database{}, fmt.Errorf("%s: %w", inFile, err)
		}
		if flag, address = inFile, strings.TrimSpace(string(b)); address == "" {
			return Database{}, fmt.Errorf("%s: %s is empty", flag, file)
		}
	}
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "":
		return Database{Path: filepath.Join(dir, "deckhand.db"), Dir: dir, Flag: flag}, nil
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return Database{}, fmt.Errorf("%s sqlite: needs a path after the colon", flag)
		}
		path, err := expandHome(path)
		if err != nil {
			return Database{}, fmt.Errorf("%s: %w", flag, err)
		}
		return Database{Path: path, Dir: dir, Flag: flag}, nil
	case "postgres", "postgresql":
		u, err := url.Parse(address)
		if err != nil || u.Host == "" && u.Query().Get("host") == "" { // the error would contain a password
			return Database{}, fmt.Errorf("%s: the PostgreSQL URL is not valid; it looks like postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full", flag)
		}
		return Database{Address: address, Dir: dir, Flag: flag}, nil
	}
	if flag == inFile || strings.ContainsAny(scheme, "@/ ") { // it may be anything
		return Database{}, fmt.Errorf("%s: use sqlite:PATH or postgres://USER@HOST/DATABASE", flag)
	}
	return Database{}, fmt.Errorf("%s: %s is not supported; use sqlite:PATH or postgres://USER@HOST/DATABASE", flag, scheme)
}
