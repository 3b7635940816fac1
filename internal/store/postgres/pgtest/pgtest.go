// Package pgtest starts a real PostgreSQL server, and a real PgBouncer before it, for tests: private ones, on sockets in a temporary
// folder, which end with the test process however that ends.
package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
)

// port is the name of the sockets; nothing listens on a network.
const port = "5432"

// Server is a running server.
type Server struct {
	// Dir has the sockets.
	Dir string

	bin    string
	script *exec.Cmd
	input  io.Closer
	say    func(command string) error

	databases atomic.Int64
}

// The server that the tests of a process share.
var (
	once   sync.Once
	shared *Server
	reason error
)

// Main is TestMain for packages whose tests use the shared server. It also checks that no goroutines are left.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if shared != nil {
			_ = shared.Stop()
		}
		os.Exit(code)
	}))
}

// New makes an empty database on the shared server and returns its address.
func New(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared returns the server that the tests of a process share. It runs with fsync=off, so its data does
// not survive a crash of the machine. Where PostgreSQL is not installed, the test is skipped; under
// CI=true it fails.
func Shared(t testing.TB) *Server {
	t.Helper()
	once.Do(func() { shared, reason = Start("fsync=off", "full_page_writes=off") })
	if reason != nil {
		missing(t, reason)
	}
	return shared
}

// Available skips a test where PostgreSQL is not installed, or fails it under CI=true.
func Available(t testing.TB) {
	t.Helper()
	if _, err := binaries(); err != nil {
		missing(t, err)
	}
}

// missing skips a test, or fails it under CI=true.
func missing(t testing.TB, reason error) {
	t.Helper()
	if !errors.Is(reason, errMissing) || os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip("SKIPPED: " + reason.Error())
}

var errMissing = errors.New("it is not installed (Debian: apt-get install postgresql pgbouncer)")

// binaries is the folder of the newest installed server.
func binaries() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return versionOf(a) - versionOf(b) })
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", fmt.Errorf("PostgreSQL: %w", errMissing)
		}
		found = []string{path}
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func versionOf(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// life makes, starts and ends a server. It ends when its input does, which is when the process
// that started it is gone, and leaves nothing.
const life = `trap "" INT TERM HUP
"$BIN/initdb" -D "$DIR/data" -U postgres -A trust --no-sync -E UTF8 --no-locale >"$DIR/log" 2>&1 &&
"$BIN/pg_ctl" -D "$DIR/data" -w -s -l "$DIR/log" -o "$OPTIONS" start >>"$DIR/log" 2>&1 && echo ready || { echo failed; cat "$DIR/log"; }
while read -r command; do
	case $command in
	kill) kill -9 "$(head -1 "$DIR/data/postmaster.pid")"; echo done ;;
	start)
		rm -f "$DIR/data/postmaster.pid"
		# What is left of the old one must end first.
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
			"$BIN/pg_ctl" -D "$DIR/data" -w -s -l "$DIR/log" -o "$OPTIONS" start >>"$DIR/log" 2>&1 && break
			sleep 0.5
		done
		echo done ;;
	esac
done
"$BIN/pg_ctl" -D "$DIR/data" -m immediate -s stop >/dev/null 2>&1
cd / && rm -rf "$DIR"`

// Start starts a server with these settings.
func Start(settings ...string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, credential, err := folder()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, bin: bin}
	options := []string{"-c listen_addresses= -p " + port + " -k " + dir, "-c max_connections=200 -c shared_buffers=32MB -c autovacuum=off"}
	for _, o := range settings {
		options = append(options, "-c "+o)
	}
	s.script = exec.Command("/bin/sh", "-c", life)
	s.script.Dir = dir
	s.script.Env = append(os.Environ(), "BIN="+bin, "DIR="+dir, "OPTIONS="+strings.Join(options, " "))
	s.script.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Setpgid: true}
	input, err := s.script.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := s.script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.input = input
	if err := s.script.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(output)
	if line, _ := lines.ReadString('\n'); line != "ready\n" {
		_ = s.input.Close()
		rest, _ := io.ReadAll(lines)
		_ = s.script.Wait()
		return nil, fmt.Errorf("PostgreSQL did not start: %s", rest)
	}
	s.say = func(command string) error {
		if _, err := io.WriteString(input, command+"\n"); err != nil {
			return err
		}
		_, err := lines.ReadString('\n')
		return err
	}
	return s, nil
}

// folder makes a folder for a server, which refuses to run as root.
func folder() (string, *syscall.Credential, error) {
	dir, err := os.MkdirTemp("/tmp", "pgtest-") // the path of a socket must be short
	if err != nil || os.Getuid() != 0 {
		return dir, nil, err
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return "", nil, err
	}
	uid, _ := strconv.ParseUint(who.Uid, 10, 32)
	gid, _ := strconv.ParseUint(who.Gid, 10, 32)
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return "", nil, err
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	_ = s.input.Close()
	return s.script.Wait()
}

// Kill ends the server as a crash would, and Restart starts it again.
func (s *Server) Kill() error { return s.say("kill") }

// Restart starts a server that was killed.
func (s *Server) Restart() error { return s.say("start") }

// Address is that of a database.
func (s *Server) Address(database string) string { return address(s.Dir, database) }

func address(dir, database string) string {
	q := url.Values{"host": {dir}, "port": {port}, "user": {"postgres"}}
	return "postgres:///" + database + "?" + q.Encode()
}

// Database makes an empty database.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	address, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Create makes an empty database, for programs that are no tests.
func (s *Server) Create() (address string, err error) {
	name, err := s.create("template1")
	return s.Address(name), err
}

// Template is what many tests begin with. Making a database takes a second on a busy machine, so
// they are used again.
type Template struct {
	// Name is a name for its database.
	Name string
	// Prepare makes it of an empty database.
	Prepare func(address string) error
	// Reset is a script that brings back what a test has changed.
	Reset string

	once sync.Once
	err  error
	mu   sync.Mutex
	free []string
}

// Copy lends a database that is like the template.
func (s *Server) Copy(t testing.TB, of *Template) string {
	t.Helper()
	of.once.Do(func() {
		if of.err = s.run("postgres", "CREATE DATABASE "+of.Name); of.err == nil {
			of.err = of.Prepare(s.Address(of.Name))
		}
	})
	if of.err != nil {
		t.Fatal(of.err)
	}
	of.mu.Lock()
	var name string
	if n := len(of.free); n > 0 {
		name, of.free = of.free[n-1], of.free[:n-1]
	}
	of.mu.Unlock()
	if name == "" {
		var err error
		if name, err = s.create(of.Name); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := s.run(name, of.Reset); err != nil {
			t.Error(err)
			return
		}
		of.mu.Lock()
		defer of.mu.Unlock()
		of.free = append(of.free, name)
	})
	return s.Address(name)
}

// create makes a database. Databases go with the server: to drop one takes seconds.
func (s *Server) create(template string) (name string, err error) {
	name = fmt.Sprintf("test_%d", s.databases.Add(1))
	return name, s.run("postgres", "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy")
}

// run runs a statement as the server's owner.
func (s *Server) run(database, sql string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	c, err := pgconn.Connect(ctx, s.Address(database))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql).ReadAll()
	return err
}
