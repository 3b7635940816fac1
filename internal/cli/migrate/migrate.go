// Package migrate is the command that moves an installation to another database.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/move"
)

// Opener opens both databases, and returns a function that closes them.
type Opener struct {
	Open func(ctx context.Context, from, to config.Database) (*move.Move, func(), error)
}

// Command is deckhand migrate.
type Command struct {
	From          string `name:"from" env:"DECKHAND_MIGRATE_FROM" placeholder:"URL" help:"Database to copy from: sqlite:PATH or postgres://USER@HOST/DATABASE. Not changed."`
	FromFile      string `name:"from-file" env:"DECKHAND_MIGRATE_FROM_FILE" placeholder:"FILE" help:"File with the URL of the database to copy from, for a URL with a password."`
	To            string `name:"to" env:"DECKHAND_MIGRATE_TO" placeholder:"URL" help:"Database to copy to: postgres://USER@HOST/DATABASE or sqlite:PATH. It must be empty or the target of the same migration."`
	ToFile        string `name:"to-file" env:"DECKHAND_MIGRATE_TO_FILE" placeholder:"FILE" help:"File with the URL of the database to copy to, for a URL with a password."`
	Conversations bool   `name:"conversations" help:"Also print the ID and the SHA-256 of each verified conversation."`
}

// Help implements kong.HelpProvider.
func (Command) Help() string {
	return "Copies all data and compares both databases by hash. If the command is interrupted, run it again to continue; no server can use the target until it is finished. Workspaces and the master key stay in the data directory.\n\nExit codes: 0 migrated and verified, 1 not migrated (the output says what to do), 2 usage error, 130 interrupted."
}

// Run moves the installation.
func (c *Command) Run(ctx context.Context, o *cli.Output, opener *Opener) error {
	from, err := database("--from", c.From, c.FromFile)
	if err != nil {
		return err
	}
	to, err := database("--to", c.To, c.ToFile)
	if err != nil {
		return err
	}
	if same(from, to) {
		return cli.Usagef("--from and --to are the same database")
	}
	if from.Missing() {
		return fmt.Errorf("--from: file not found: %s", from)
	}
	unlock, err := lock(from, to)
	if err != nil {
		return err
	}
	defer unlock()
	m, end, err := opener.Open(ctx, from, to)
	if err != nil {
		return err
	}
	defer end()
	p := &printer{out: o.Stderr}
	m.OnProgress = p.print
	if c.Conversations {
		m.OnConversation = func(v move.Conversation) { fmt.Fprintf(o.Stdout, "%x  %s\n", v.SHA256, v.ID) }
	}
	report, err := m.Run(ctx)
	printDigests(o.Stdout, report)
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.CodeError{Code: cli.ExitInterrupted, Err: errors.New("interrupted; the source is unchanged. Run the same command again to continue")}
	case errors.Is(err, move.ErrOther), errors.Is(err, move.ErrUnfinished), errors.Is(err, move.ErrEmpty), errors.Is(err, move.ErrDiffers):
		return err
	case err != nil:
		return fmt.Errorf("%w\nThe source is unchanged. Run the same command again to continue", err)
	}
	done := "Migrated"
	if report.Already {
		done = "Already migrated:"
	}
	fmt.Fprintf(o.Stdout, "%s %d conversations to %s. Both databases are equal.\n", done, report.Conversations, to)
	fmt.Fprintf(o.Stdout, "Start the server with the same data directory and the new database: %s\n", start(to))
	fmt.Fprintf(o.Stdout, "Do not start a server on the old database %s again: it lacks all later changes.\n", from)
	return nil
}

func database(flag, address, file string) (config.Database, error) {
	if address == "" && file == "" {
		return config.Database{}, cli.Usagef("use %s or %s-file", flag, flag)
	}
	d, err := config.DatabaseOf(flag, address, file, "")
	if err != nil {
		return d, cli.CodeError{Code: cli.ExitUsage, Err: err}
	}
	if info, err := os.Stat(d.Path); d.Path != "" && err == nil && !info.Mode().IsRegular() {
		return d, cli.Usagef("%s: %s is not a file; for a data directory, use DIR/deckhand.db", flag, d.Path)
	}
	return d, nil
}

// same reports whether both are the same database.
func same(a, b config.Database) bool {
	if a.Address != "" || b.Address != "" {
		return a.Address == b.Address
	}
	one, err := os.Stat(a.Path)
	two, err2 := os.Stat(b.Path)
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// lock locks the data directories of SQLite files, so that no server starts there. PostgreSQL has its lock in the database.
func lock(databases ...config.Database) (unlock func(), err error) {
	locked := map[string]func(){}
	unlock = func() {
		for _, end := range locked {
			end()
		}
	}
	for _, d := range databases {
		if d.Path == "" {
			continue
		}
		dir, err := filepath.Abs(filepath.Dir(d.Path))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(dir, "server.lock")); err != nil || locked[dir] != nil {
			continue
		}
		if locked[dir], err = datadir.Lock(dir); err != nil {
			delete(locked, dir)
			unlock()
			return nil, fmt.Errorf("another deckhand process is using %s; stop it first", dir)
		}
	}
	return unlock, nil
}

// start returns the command that starts a server on the new database.
func start(to config.Database) string {
	switch {
	case to.Address != "":
		return "deckhand serve --database-url " + to.String()
	case filepath.Base(to.Path) == "deckhand.db":
		return "deckhand serve --data-dir " + filepath.Dir(to.Path)
	}
	return "deckhand serve --database-url sqlite:" + to.Path
}

// printer prints progress, at most once per table and progressEvery.
type printer struct {
	out   io.Writer
	last  move.Progress
	at    time.Time
	begun bool
}

// progressEvery is how often progress within a table is printed.
const progressEvery = 2 * time.Second

func (p *printer) print(now move.Progress) {
	if !p.begun && now.Resumed {
		fmt.Fprintln(p.out, "Continuing the interrupted migration.")
	}
	p.begun = true
	if now.Phase == p.last.Phase && now.Table == p.last.Table && time.Since(p.at) < progressEvery {
		return
	}
	p.last, p.at = now, time.Now()
	if now.Table == "" {
		fmt.Fprintf(p.out, "%s\n", now.Phase)
		return
	}
	fmt.Fprintf(p.out, "%s %s: %d rows\n", now.Phase, now.Table, now.Rows)
}

// printDigests prints the digests of all tables.
func printDigests(w io.Writer, r move.Report) {
	if len(r.Tables) == 0 {
		return
	}
	const digits = 16
	fmt.Fprintf(w, "%-14s %10s  %-*s  %-*s\n", "table", "rows", digits, "source", digits, "target")
	for _, d := range r.Tables {
		mark := ""
		if d.From != d.To {
			mark = fmt.Sprintf("  differs (%d rows)", d.To.Rows)
		}
		fmt.Fprintf(w, "%-14s %10d  %s  %s%s\n", d.Table, d.From.Rows, d.From.String()[:digits], d.To.String()[:digits], mark)
	}
}
