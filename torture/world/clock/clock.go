//go:build linux && amd64

// Package clock starts a program whose wall clock can be set, without a library and without
// changing the clock of the machine. A time namespace has no wall clock, and a static program
// loads no library. So the vDSO is hidden from the program at its start, which makes it ask the
// kernel for the time, and a seccomp filter hands that system call to this process, which answers
// it. The clocks of the programs that it starts are real.
package clock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Possible says that clocks can be set here.
const Possible = true

// Stage is the first argument of the process that installs the filter and becomes the program.
const Stage = "torture-clock-stage"

// Clock is the wall clock of a program.
type Clock struct{ offset atomic.Int64 }

// Set makes the clock differ from the real one by so much.
func (c *Clock) Set(offset time.Duration) { c.offset.Store(int64(offset)) }

// Offset is by how much it differs.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// wrap makes cmd, whose Path and Args are the program, this program in the stage before it.
func (c *Clock) wrap(cmd *exec.Cmd, socket *os.File) {
	cmd.Args = append([]string{os.Args[0], Stage, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{socket}
}

// Start starts a program with this clock. start is called once on a locked thread, and starts cmd.
func (c *Clock) Start(cmd *exec.Cmd, start func() error) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	c.wrap(cmd, theirs)
	// Only the thread that started a process may trace it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := start(); err != nil {
		return err
	}
	theirs.Close() // or a process that died would never be noticed
	pid := cmd.Process.Pid
	err = c.adopt(int(ours.Fd()), pid)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_ = cmd.Wait()
	}
	return err
}

// adopt receives the filter of the process, and hides the vDSO when it becomes the program.
func (c *Clock) adopt(socket, pid int) error {
	listener, err := receive(socket)
	if err != nil {
		return fmt.Errorf("the filter for the clock: %w", err)
	}
	if err := awaitProgram(pid); err != nil {
		unix.Close(listener)
		return err
	}
	err = hideVDSO(pid)
	if e := unix.PtraceDetach(pid); err == nil {
		err = e
	}
	if err != nil {
		unix.Close(listener)
		return err
	}
	go c.serve(listener, pid)
	return nil
}

// awaitProgram waits until the process has become the program. Signals that come before, such as
// those of the Go runtime, are passed on.
func awaitProgram(pid int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case !status.Stopped():
			return errors.New("the program did not start")
		case status.StopSignal() == unix.SIGTRAP:
			return nil
		default:
			if err := unix.PtraceCont(pid, int(status.StopSignal())); err != nil {
				return err
			}
		}
	}
}

func receive(socket int) (int, error) {
	var data [1]byte
	room := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data[:], room, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(room[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("it was not sent"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(err, errors.New("it was not sent"))
	}
	return fds[0], nil
}

// Kinds of entries of the auxiliary vector.
const (
	auxEnd    = 0
	auxIgnore = 1
	auxVDSO   = 33
)

// hideVDSO removes the vDSO from what a program that is about to run is told by the kernel.
func hideVDSO(pid int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	word := func(at uint64) (uint64, error) {
		var b [8]byte
		_, err := unix.PtracePeekData(pid, uintptr(at), b[:])
		return binary.LittleEndian.Uint64(b[:]), err
	}
	at := regs.Rsp
	count, err := word(at)
	if err != nil {
		return err
	}
	at += 8 * (count + 2) // the arguments and the zero behind them
	for v := uint64(1); v != 0; at += 8 {
		if v, err = word(at); err != nil {
			return err
		}
	}
	for ; ; at += 16 {
		kind, err := word(at)
		switch {
		case err != nil:
			return err
		case kind == auxEnd:
			return errors.New("there is no vDSO to hide")
		case kind == auxVDSO:
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], auxIgnore)
			_, err := unix.PtracePokeData(pid, uintptr(at), b[:])
			return err
		}
	}
}

// notification is struct seccomp_notif, answer is struct seccomp_notif_resp.
type (
	notification struct {
		ID         uint64
		PID, Flags uint32
		Call       int32
		Arch       uint32
		Pointer    uint64
		Args       [6]uint64
	}
	answer struct {
		ID    uint64
		Value int64
		Error int32
		Flags uint32
	}
)

const flagContinue = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE

// serve answers until no process with the filter is left.
func (c *Clock) serve(listener, pid int) {
	defer unix.Close(listener)
	own := map[uint32]bool{} // threads of the program
	for {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			continue // the process has ended
		}
		a := answer{ID: n.ID}
		if !own[n.PID] && group(int(n.PID)) == pid {
			own[n.PID] = true
		}
		if !own[n.PID] || !c.tell(n) {
			a.Flags = flagContinue // the programs that it started have the real clock
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	}
}

// tell writes the time into the memory of the asker.
func (c *Clock) tell(n notification) bool {
	now := time.Now().Add(c.Offset())
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(now.Unix()))
	binary.LittleEndian.PutUint64(b[8:], uint64(now.Nanosecond()))
	local := []unix.Iovec{{Base: &b[0], Len: 16}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.Args[1]), Len: 16}}
	wrote, err := unix.ProcessVMWritev(int(n.PID), local, remote, 0)
	return err == nil && wrote == 16
}

// group is the process of a thread.
func group(thread int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0
	}
	var id int
	for line := range lines(text) {
		if _, err := fmt.Sscanf(line, "Tgid:\t%d", &id); err == nil {
			return id
		}
	}
	return 0
}
