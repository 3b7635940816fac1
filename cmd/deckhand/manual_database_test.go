package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/postgres/pgtest"
)

// The commands that create the database of several servers can be repeated until they succeed: in the end, the role has the password in
// database.url, which only its owner can read.
func TestDatabaseBlockOfTheDocumentation(t *testing.T) {
	t.Parallel()
	pgtest.Available(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	server, err := pgtest.Start("listen_addresses=127.0.0.1", "port="+port, "password_encryption=md5") // which can be compared
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	c, err := pgconn.Connect(t.Context(), "postgres://postgres@127.0.0.1:"+port+"/postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	query := func(sql string) string {
		t.Helper()
		done, err := c.Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if rows := done[len(done)-1].Rows; len(rows) == 1 {
			return string(rows[0][0])
		}
		return ""
	}
	for _, page := range []string{"README.md", "docs/scaling.md"} {
		script := databaseBlock(t, page)
		home, bin := t.TempDir(), t.TempDir()
		run := func(sudo string) error {
			t.Helper()
			if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte(sudo), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "umask 022\n"+script)
			cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
		works := fmt.Sprintf(superuser, port)
		query("DROP DATABASE IF EXISTS deckhand")
		query("DROP ROLE IF EXISTS deckhand")
		query("CREATE ROLE deckhand") // by an attempt that failed after it

		// The second one is a database server without space for another database.
		for _, sudo := range []string{"#!/bin/bash\nexit 1\n", strings.Replace(works, `exec "$@"`, `sed "s/'CREATE DATABASE deckhand.*' WHERE/'CREATE nothing' WHERE/" | "$@"`, 1)} {
			if err := run(sudo); err == nil {
				t.Errorf("%s: no error", page)
			}
			if _, err := os.Stat(filepath.Join(home, "deckhand-servers", "database.url")); err == nil {
				t.Fatalf("%s: there is a URL of a database that does not exist", page)
			}
		}
		var files [2]string
		for range 2 {
			if err := run(works); err != nil {
				t.Fatalf("%s: %v", page, err)
			}
			for i, name := range []string{"master.key", "database.url"} {
				path := filepath.Join(home, "deckhand-servers", name)
				text, err := os.ReadFile(path)
				info, statErr := os.Stat(path)
				if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || files[i] != "" && files[i] != string(text) {
					t.Fatalf("%s: %s: %v %v %v", page, name, err, statErr, info)
				}
				files[i] = string(text)
			}
		}
		password, _, _ := strings.Cut(strings.TrimPrefix(files[1], "postgres://deckhand:"), "@")
		if query("SELECT rolpassword = 'md5' || md5('"+password+"deckhand') AND rolcanlogin FROM pg_authid WHERE rolname = 'deckhand'") != "t" {
			t.Errorf("%s: the role does not have the password in %s", page, files[1])
		}
		if owner := query("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'deckhand'"); owner != "deckhand" {
			t.Errorf("%s: the owner of the database is %q", page, owner)
		}
	}
}

// databaseBlock returns the commands of a page that create a database.
func databaseBlock(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := shellBlocks(string(text))
	for _, b := range blocks {
		if strings.Contains(b.text, "CREATE ROLE deckhand") {
			return b.text
		}
	}
	t.Fatalf("%s creates no database", page)
	return ""
}
