package box

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/runner/confine"
)

// harden takes away from the whole process what building the sandbox needed, but
// for its capabilities: they are given up by confineThread, before anything else
// is started.
func harden(s *Setup) error {
	if err := limit(s); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	// The filter is synchronised to all threads, and no_new_privs with it.
	if err := filterCalls(); err != nil {
		return err
	}
	// Processes inside must not trace this process, read its memory, or use its descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the runner's memory: %w", err)
	}
	go shrugOff()
	return nil
}

// dropCaps takes the capabilities of every thread. They belong to threads, and
// the Go runtime has several by now.
func dropCaps() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e == syscall.ENOTSUP {
		return errors.New("giving up capabilities: the runner must be built with CGO_ENABLED=0")
	}
	if e != 0 {
		return fmt.Errorf("giving up capabilities: %w", e)
	}
	return nil
}

// limit sets the resource limits.
func limit(s *Setup) error {
	limits := []struct {
		which      int
		name       string
		soft, hard uint64
	}{
		{unix.RLIMIT_CORE, "core size", 0, 0},
		{unix.RLIMIT_NOFILE, "open files", 16 << 10, 64 << 10},
		{unix.RLIMIT_FSIZE, "file size", s.FileSize, s.FileSize},
		{unix.RLIMIT_NPROC, "processes", s.Processes, s.Processes},
		{unix.RLIMIT_DATA, "data", s.Data, s.Data},
	}
	for _, l := range limits {
		if l.hard == 0 && l.which != unix.RLIMIT_CORE {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return fmt.Errorf("reading the limit on %s: %w", l.name, err)
		}
		want := unix.Rlimit{Cur: min(l.soft, now.Max), Max: min(l.hard, now.Max)}
		if err := unix.Setrlimit(l.which, &want); err != nil {
			return fmt.Errorf("limiting %s: %w", l.name, err)
		}
	}
	return nil
}

// shrugged is closed when signals are harmless.
var shrugged = make(chan struct{})

// shrugOff makes signals harmless that would end a Go program. SIGKILL and SIGSTOP from inside
// do nothing to the first process of a namespace, and the others must not either. They are
// caught, not ignored: child processes would inherit ignored signals. It is slow, so it runs
// concurrently, and only where the kernel does not keep signals off.
func shrugOff() {
	defer close(shrugged)
	caught := []os.Signal{unix.SIGXFSZ} // a limit that the runner itself can meet
	if !confine.Scoped() {
		caught = append(caught,
			unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
			unix.SIGUSR1, unix.SIGSEGV, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGSTKFLT,
			unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGXCPU, unix.SIGVTALRM, unix.SIGIO, unix.SIGPWR, unix.SIGSYS)
	}
	signal.Notify(make(chan os.Signal, 1), caught...)
}

// dropped is closed when no thread has capabilities any more.
var dropped = make(chan struct{})

// Dropped is closed when all threads have lost their capabilities. Those that are made later
// begin without, and need not be stopped for it.
func Dropped() <-chan struct{} { return dropped }

// confinedBefore says that a thread was confined, so that all others have lost, or are
// about to lose, their capabilities.
var confinedBefore atomic.Bool

// confineThread takes the rest. It runs on each thread that starts processes.
func confineThread() error {
	<-shrugged
	again := confinedBefore.Swap(true)
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) && !(again && errors.Is(err, unix.EPERM)) {
			return fmt.Errorf("emptying the bounding set: %w", err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	if again {
		return scope()
	}
	// The runner's other threads follow in a moment. All of them have to stop for
	// that, which takes longer than all the rest; what is started from here on has
	// its rights from this thread.
	go func() {
		if err := dropCaps(); err != nil {
			fmt.Fprintln(os.Stderr, "runner:", err)
			os.Exit(1)
		}
		close(dropped)
	}()
	return scope()
}

// scope keeps what this thread starts from signalling the runner, or anything
// else that this thread did not start. Kernels before 6.12 cannot do that;
// there, shrugOff has to be enough.
//
// There is nothing to say about files: what is not to be touched is not in the tree.
func scope() error {
	if !confine.Scoped() {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return fmt.Errorf("making a landlock ruleset: %w", e)
	}
	defer unix.Close(int(fd))
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("entering landlock: %w", e)
	}
	return nil
}

// processName is what tools show for the runner, which was started by a descriptor.
func processName() unsafe.Pointer { return unsafe.Pointer(&[]byte("runner\x00")[0]) }
