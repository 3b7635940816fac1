// Command runner is the half of Deckhand that lives inside a sandbox. It is a
// program of its own, without the server's dependencies, since it runs once in
// every sandbox; deckhand carries it inside and puts it where it is needed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/launcher"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner"
	"deckhand/internal/sandbox/runner/checkpoints"
	"deckhand/internal/sandbox/runner/confine"
	"deckhand/internal/sandbox/runner/limit"
	"deckhand/internal/sandbox/runner/spawn"
)

// version is set by the build.
var version = "dev"

const usage = `runner runs inside a Deckhand sandbox. Deckhand starts it; there is no need to do so by hand.

  runner serve --socket PATH --state DIR --output DIR --workspace DIR [--network proxied|isolated]
  runner dial --socket PATH      connect standard input and output to a runner
  runner box                     enter a local sandbox and serve there
  runner launch                  start other runners, for the server
  runner version
`

func main() {
	// Few goroutines and little memory: collecting early keeps an idle runner small. The launcher
	// says so in the environment, which costs nothing.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "box":
		err = inBox()
	case launcher.Argument:
		err = launcher.Serve()
	case "serve":
		err = serve(os.Args[2:])
	case "dial":
		err = dial(os.Args[2:])
	case "version":
		fmt.Println(version)
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
}

// inBox makes this process the first of a local sandbox.
func inBox() error {
	box.CloseInherited()
	// The thread that will start everything is made while there is time: before
	// the sandbox is built around it.
	entered := make(chan func() error, 1)
	enter := sync.OnceValue(func() func() error { return <-entered })
	spawner, err := spawn.New(spawn.Options{Confine: func() error { return enter()() }})
	if err != nil {
		return err
	}
	c, listener, confine, err := box.Enter()
	if err != nil {
		return err
	}
	entered <- confine
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + c.Home, "USER=root", "LOGNAME=root", "LANG=C.UTF-8"}
	r, err := runner.New(runner.Config{State: c.State, Output: c.Output, OutputSeen: c.OutputSeen, Workspace: c.Workspace,
		Network: sandbox.Network(c.Network), Env: env, Set: c.Env, Confine: confine, Spawner: spawner, Kept: true, Exit: end, Version: version})
	if err != nil {
		return err
	}
	go func() { // beside the first command
		<-box.Dropped()
		spawn.Reserve()
	}()
	go endAlone(r)
	if c.Disk > 0 && len(c.Written) > 0 {
		go limit.Hold(r, c.Disk, c.Written...)
	}
	return r.Serve(listener)
}

// end ends this process, and so everything in the sandbox.
func end() { os.Exit(0) }

// endAlone ends this process, and so everything in the sandbox, when no server will
// come back to it.
func endAlone(r *runner.Runner) {
	why := r.Abandoned(runner.AbandonedAfter)
	fmt.Fprintln(os.Stderr, "runner: ends:", why)
	r.Close()
	os.Exit(0)
}

// serve listens on a socket, in an environment that the driver built.
func serve(args []string) error {
	f := flag.NewFlagSet("serve", flag.ExitOnError)
	socket := f.String("socket", "", "unix socket to listen on")
	state := f.String("state", "", "the runner's own folder")
	output := f.String("output", "", "folder for whole outputs")
	workspace := f.String("workspace", sandbox.Workspace, "folder that commands begin in")
	network := f.String("network", "proxied", "proxied or isolated")
	kept := f.String("checkpoints", "", "folder for checkpoints of the workspace; enables the checkpoint operations")
	unmeasured := f.Bool("unmeasured", false, "the workspace is a folder of the user, to which no disk limit applies")
	size := f.Uint64("file-size", 0, "limit of one file and of the disk, in bytes, for engines that set none; 0 keeps the limit")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *size > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: *size, Max: *size}); err != nil {
			return fmt.Errorf("limit the size of files: %w", err)
		}
	}
	if *socket == "" || *state == "" || *output == "" {
		return errors.New("serve needs --socket, --state and --output")
	}
	for _, dir := range []string{filepath.Dir(*socket), filepath.Dir(*state), filepath.Dir(*output)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.Remove(*socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c := runner.Config{State: *state, Output: *output, Workspace: *workspace, Env: environ(), Version: version}
	if *network == "isolated" {
		c.Network = sandbox.Isolated
	}
	if *kept != "" {
		c.More = checkpoints.New(*workspace, *kept).Handlers()
	}
	if *unmeasured {
		c.More = maps.Collect(maps.All(c.More)) // may be nil
		c.More["usage"] = func(context.Context, *rpc.Call) (any, error) { return 0, nil }
	}
	alone := os.Getpid() == 1 // the first process of a container, which is there for us
	if alone {
		if err := confine.Own(filepath.Dir(*state), *state, filepath.Dir(*socket)); err != nil {
			return err
		}
		// A limit that the runner itself can meet must not end it.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
		c.Confine = confine.From(*state, filepath.Dir(*socket))
		if *unmeasured {
			from := c.Confine
			c.Confine = func() error { return errors.Join(from(), box.KeepFolder()) }
		}
		if err := box.Guard(); err != nil {
			return err
		}
	}
	r, err := runner.New(c)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	if alone {
		// The server's connector has another user. Only it and the runner can reach the folder of the socket.
		if err := os.Chmod(*socket, 0o666); err != nil {
			return err
		}
		listener = outsiders{listener}
	}
	go spawn.Reserve()
	go endAlone(r)
	var most unix.Rlimit // of one file, and the server sets the same for all
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &most); alone && !*unmeasured && err == nil && most.Cur < math.MaxInt64 {
		go limit.Hold(r, int64(most.Cur), *workspace)
	}
	return r.Serve(listener)
}

// outsiders accepts connections only from processes that were put into the
// container from outside, as the server's are: they have no parent here. What
// runs inside is the runner's own and must not command it.
type outsiders struct{ net.Listener }

func (l outsiders) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || fromOutside(conn) {
			return conn, err
		}
		conn.Close()
	}
}

// peerOf returns the process at the other end of a connection: 0 if it is not in our namespace, -1 if it is unknown.
func peerOf(conn net.Conn) int {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return -1
	}
	var peer *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil || err != nil {
		return -1
	}
	return int(peer.Pid)
}

func fromOutside(conn net.Conn) bool {
	peer := peerOf(conn)
	if peer == 0 { // not in our namespace at all
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(peer) + "/stat")
	if err != nil {
		return false
	}
	// The name stands in brackets and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 1 && string(fields[1]) == "0"
}

// environ is the image's own, without what was meant for the runner.
func environ() []string {
	var out []string
	home := false
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "DECKHAND_") {
			continue
		}
		home = home || strings.HasPrefix(e, "HOME=")
		out = append(out, e)
	}
	if !home {
		out = append(out, "HOME=/root")
	}
	return out
}

// dialWait is how long a runner that was just started may take to listen.
const dialWait = 10 * time.Second

// dial connects standard input and output to a runner's socket.
func dial(args []string) error {
	f := flag.NewFlagSet("dial", flag.ExitOnError)
	socket := f.String("socket", "", "unix socket of the runner")
	if err := f.Parse(args); err != nil {
		return err
	}
	// No process inside may trace the connector or use its descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	var conn net.Conn
	var err error
	for end := time.Now().Add(dialWait); ; time.Sleep(2 * time.Millisecond) {
		if conn, err = net.Dial("unix", *socket); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	// The engine starts this program in a container, where only the first process is the runner.
	if os.Getppid() == 0 && peerOf(conn) != 1 {
		return errors.New("the process that listens on the socket is not the runner")
	}
	go spawn.Reserve()
	// Either end closing ends the other: a half-open connection is useless.
	var once sync.Once
	over := make(chan struct{})
	end := func() { once.Do(func() { close(over) }) }
	go func() { _, _ = io.Copy(conn, os.Stdin); end() }()
	go func() { _, _ = io.Copy(os.Stdout, conn); end() }()
	<-over
	return nil
}
