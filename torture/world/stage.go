//go:build linux

package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageVariable tells a process of the program what it is: the first process of the
// namespaces, or the run itself.
const stageVariable = "DECKHAND_TORTURE_STAGE"

// Enter runs this program again inside its own process, mount and network namespaces. In
// the innermost process it returns inside = true, and the caller does the work. Otherwise
// the work was done by that process, and code is its exit code.
func Enter() (inside bool, code int, err error) {
	switch os.Getenv(stageVariable) {
	case "":
		if os.Getuid() != 0 {
			return false, 0, errors.New("this needs root: faults are injected with namespaces, mounts and signals to sandboxes")
		}
		flags := uintptr(unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET)
		code, err = again("first", &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL, Setpgid: true})
		return false, code, err
	case "first":
		code, err = first()
		return false, code, err
	}
	return true, 0, os.Unsetenv(stageVariable)
}

// again runs this program with the same arguments as another stage and passes signals on to it.
func again(stage string, attr *syscall.SysProcAttr) (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"="+stage)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// first is the first process of the namespaces. It waits for every process that loses its
// parent, and everything ends when it does.
func first() (int, error) {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return 0, fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return 0, fmt.Errorf("mount /proc: %w", err)
	}
	run := exec.Command("/proc/self/exe", os.Args[1:]...)
	run.Args[0] = os.Args[0]
	run.Env = append(os.Environ(), stageVariable+"=run")
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = run.Process.Signal(s)
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case pid == run.Process.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == run.Process.Pid:
			return 1, fmt.Errorf("the run was ended by signal %v", status.Signal())
		}
	}
}
