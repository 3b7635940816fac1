// Package backups holds the commands that back up the data of a server and restore it.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"deckhand/internal/backup"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
)

// Deps are the dependencies of the commands.
type Deps struct {
	Version string
	// Database opens a database for backup and restore.
	Database func(config.Database) backup.Database
	// Verify checks all conversations of a data directory. flags are those with which other commands use it, for hints.
	Verify func(ctx context.Context, c config.DataFlags, flags string, out io.Writer) error
}

// Command is deckhand backup.
type Command struct {
	Create Create `cmd:"" default:"withargs" help:"Back up the database and the workspaces to a folder. The server may be running. The word create can be omitted."`
	List   List   `cmd:"" help:"List the backups in a folder."`
	Verify Verify `cmd:"" help:"Read all backups in a folder and check their hashes."`
}

// Create is deckhand backup create.
type Create struct {
	config.DataFlags
	WithKey bool   `name:"with-key" help:"Include the master key. Anyone who can read the backup can then decrypt the stored secrets."`
	Keep    int    `name:"keep" placeholder:"N" help:"Keep the newest N backups in the folder and remove older ones. Default: keep all."`
	Dir     string `arg:"" name:"dir" help:"Folder for backups. It is created if it is missing."`
}

// Help implements kong.HelpProvider.
func (Create) Help() string {
	return "A folder can hold many backups: each stores only what has changed, but can be restored on its own. If a backup is interrupted, run the command again. Workspaces of container sandboxes are volumes of the engine and are not included."
}

// Run makes a backup.
func (c *Create) Run(ctx context.Context, file *config.Resolver, o *cli.Output, d *Deps) error {
	if c.Keep < 0 {
		return cli.Usagef("--keep must not be negative")
	}
	where, err := c.Served()
	if err != nil {
		return err
	}
	hint := config.Packaged.Hint(c.DataDir)
	switch _, err := os.Stat(c.DataDir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the data directory %s does not exist; use the --data-dir of the server%s", c.DataDir, hint)
	case err != nil:
		return fmt.Errorf("cannot use the data directory: %w; run the command as the user of the server%s", err, hint)
	case where.Missing():
		return fmt.Errorf("no database at %s; use the --data-dir and --database-url of the server%s", where, hint)
	}
	if inside, err := within(c.Dir, c.DataDir); err != nil || inside {
		return errors.Join(err, errors.New("the backup folder must be outside the data directory"))
	}
	key := filepath.Join(c.DataDir, "master.key")
	if _, err := os.Stat(key); c.WithKey && err != nil {
		return fmt.Errorf("--with-key: there is no %s; the server gets its key from %s", key, secret.EnvMaster)
	}
	if err := file.SwitchUser(c.Dir); err != nil {
		return err
	}
	r, err := backup.Create(c.Dir)
	if err != nil {
		return accessible(err, c.Dir)
	}
	defer r.Close()
	p := watch(r, o.Stderr, "backup")
	defer p.stop()
	m, err := r.Make(ctx, backup.Options{DataDir: c.DataDir, Database: d.Database(where), Version: d.Version, Key: c.WithKey, Step: p.step})
	if err != nil {
		return fmt.Errorf("%w; earlier backups are unchanged", err)
	}
	removed, err := r.Prune(c.Keep)
	p.stop()
	if err != nil {
		return fmt.Errorf("backup %s is complete, but old data could not be removed: %w", m.Name, err)
	}
	fmt.Fprintf(o.Stdout, "backup %s: %s, %d workspaces, %s; added %s; verified\n", m.Name, m.Database, m.Workspaces(), size(m.Size()), size(m.Added))
	for _, name := range removed {
		fmt.Fprintf(o.Stdout, "removed backup %s\n", name)
	}
	switch _, err := os.Stat(key); {
	case c.WithKey:
		fmt.Fprintln(o.Stdout, "The backup contains the master key: protect it like the secrets themselves.")
	case err == nil:
		fmt.Fprintf(o.Stdout, "The master key is not included. Keep a copy of %s in another place.\n", key)
	default:
		fmt.Fprintf(o.Stdout, "The master key is not included. Keep a copy of %s in another place.\n", secret.EnvMaster)
	}
	if err := backup.Record(c.DataDir); err != nil {
		return fmt.Errorf("backup %s is complete, but its time was not recorded for the health page: %w", m.Name, err)
	}
	return nil
}

// accessible adds advice to an error if a folder with backups belongs to another user.
func accessible(err error, dir string) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return fmt.Errorf("%w; user %s needs access: choose a folder such as /var/backups/deckhand, or run chown -R %s: %s", err, name, name, dir)
}

// within reports whether a path is in a folder.
func within(path, dir string) (bool, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel), nil
}

// List is deckhand backup list.
type List struct {
	Dir string `arg:"" name:"dir" help:"Folder with backups."`
}

// Run prints the backups, oldest first.
func (c *List) Run(_ context.Context, o *cli.Output) error {
	r, err := backup.Open(c.Dir)
	if err != nil {
		return err
	}
	defer r.Close()
	all, err := r.List()
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "%-20s  %-20s  %-10s  %10s  %10s  %10s  %s\n", "NAME", "TIME", "DATABASE", "WORKSPACES", "SIZE", "ADDED", "KEY")
	for _, m := range all {
		key := "no"
		if m.HasKey() {
			key = "yes"
		}
		fmt.Fprintf(o.Stdout, "%-20s  %-20s  %-10s  %10d  %10s  %10s  %s\n", m.Name, m.Created.Format(time.RFC3339), m.Database, m.Workspaces(), size(m.Size()), size(m.Added), key)
	}
	return nil
}

// Verify is deckhand backup verify.
type Verify struct {
	Dir string `arg:"" name:"dir" help:"Folder with backups."`
}

// Run verifies all backups.
func (c *Verify) Run(ctx context.Context, o *cli.Output) error {
	n, err := All(ctx, c.Dir, o.Stderr)
	if err == nil {
		fmt.Fprintf(o.Stdout, "%d backups are valid\n", n)
	}
	return err
}

// All verifies all backups in a folder and returns how many there are.
func All(ctx context.Context, dir string, progress io.Writer) (int, error) {
	r, err := backup.Open(dir)
	if err != nil {
		return 0, accessible(err, dir)
	}
	defer r.Close()
	all, err := r.List()
	if err != nil {
		return 0, err
	}
	p := watch(r, progress, "verify")
	defer p.stop()
	for _, m := range all {
		p.step(m.Name)
		if err := r.Verify(ctx, m); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// Restore is deckhand restore.
type Restore struct {
	config.DataFlags
	Backup         string `name:"backup" placeholder:"NAME" help:"Backup to restore. Default: the newest one."`
	WorkspacesOnly bool   `name:"workspaces-only" help:"Restore the workspaces of one of several servers and leave the database as it is. It must already contain the restored data of the same installation."`
	Dir            string `arg:"" name:"dir" help:"Folder with backups."`
}

// Help implements kong.HelpProvider.
func (Restore) Help() string {
	return "The data directory and the database must be empty or missing. SQLite is restored to SQLite, and PostgreSQL to PostgreSQL. If several servers used a database, restore the backup of one of them, and those of the others with --workspaces-only. If a restore is interrupted, run the command again."
}

// Run restores a backup.
func (c *Restore) Run(ctx context.Context, file *config.Resolver, o *cli.Output, d *Deps) error {
	where, err := c.Database()
	if err != nil {
		return err
	}
	flags := c.DataFlags.Flags()
	if where.Address != "" { // the file with the address may be for root only
		c.DatabaseURL, c.DatabaseURLFile = where.Address, ""
	}
	if err := file.SwitchUser(c.DataDir); err != nil {
		return err
	}
	r, err := backup.Open(c.Dir)
	if err != nil {
		return accessible(err, c.Dir)
	}
	defer r.Close()
	m, err := r.Find(c.Backup)
	if err != nil {
		return err
	}
	if datadir.InUse(c.DataDir) {
		return fmt.Errorf("a server is using %s; stop it and move its data away, or choose a new --data-dir", c.DataDir)
	}
	p := watch(r, o.Stderr, "restore")
	defer p.stop()
	if err := r.Restore(ctx, m, backup.Target{DataDir: c.DataDir, Database: d.Database(where), WorkspacesOnly: c.WorkspacesOnly, Step: p.step}); err != nil {
		return err
	}
	p.stop()
	if c.WorkspacesOnly {
		fmt.Fprintf(o.Stdout, "restored the workspaces of backup %s to %s: %d workspaces; verified\n", m.Name, c.DataDir, m.Workspaces())
	} else {
		fmt.Fprintf(o.Stdout, "restored backup %s to %s: %s, %d workspaces, %s; verified\n", m.Name, c.DataDir, where, m.Workspaces(), size(m.Size()))
	}
	if !m.HasKey() && os.Getenv(secret.EnvMaster) == "" {
		fmt.Fprintf(o.Stdout, "The backup does not contain the master key. Before you start the server, copy your master.key to %s, or set %s.\n", filepath.Join(c.DataDir, "master.key"), secret.EnvMaster)
	}
	if c.WorkspacesOnly {
		return nil
	}
	return d.Verify(ctx, c.DataFlags, flags, o.Stdout)
}

// watcher prints the progress of a long command every few seconds.
type watcher struct {
	bytes atomic.Int64
	doing atomic.Pointer[string]
	end   chan struct{}
	ended chan struct{}
}

// every is the time between two lines of progress.
const every = 3 * time.Second

func watch(r *backup.Repository, out io.Writer, name string) *watcher {
	w := &watcher{end: make(chan struct{}), ended: make(chan struct{})}
	w.step("starting")
	r.Progress = func(n int) { w.bytes.Add(int64(n)) }
	go func() {
		defer close(w.ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-w.end:
				return
			case <-tick.C:
				fmt.Fprintf(out, "%s: %s, %s\n", name, *w.doing.Load(), size(w.bytes.Load()))
			}
		}
	}()
	return w
}

func (w *watcher) step(text string) { w.doing.Store(&text) }

// stop ends the output and may be called twice.
func (w *watcher) stop() {
	select {
	case <-w.end:
	default:
		close(w.end)
	}
	<-w.ended
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d kB", (n+1023)>>10)
}
