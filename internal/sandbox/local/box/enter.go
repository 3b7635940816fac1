package box

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Enter builds the sandbox around the calling process and returns when it is
// inside and has given up its rights. The listener is where the server
// connects. confine must be called on each thread that will start
// processes (spawn.Options.Confine); it takes the last rights away, and from
// what that thread starts also the means to signal the runner.
//
// An error has been reported to the driver already; the process must end.
func Enter() (config *Config, listener net.Listener, confine func() error, err error) {
	// Mounting needs rights that belong to a thread, so everything is done on one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.CloseOnExec(ControlFD)
	unix.CloseOnExec(ListenFD)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(processName()), 0, 0, 0)
	unix.Umask(0o022)

	setup, fds, err := receive()
	if err != nil {
		return nil, nil, nil, err
	}
	b := &builder{setup: setup, fds: fds}
	config, err = b.enter()
	if err == nil {
		err = harden(setup)
	}
	if err == nil {
		listener, err = listen()
	}
	report := Report{Notes: b.notes}
	if err != nil {
		report = Report{Error: err.Error(), NoOverlay: errors.Is(err, errNoOverlay)}
	}
	// A server that is gone by now does not end the sandbox: the next one finds it.
	_ = send(report)
	if err != nil {
		return nil, nil, nil, err
	}
	if setup.Tether {
		go tether()
	} else {
		unix.Close(ControlFD)
	}
	confine = confineThread
	if setup.Work != "" { // a folder of the machine
		confine = func() error { return errors.Join(confineThread(), KeepFolder()) }
	}
	return config, listener, confine, nil
}

// CloseInherited closes descriptors that the server inherited: the sandbox may outlive the
// server, and must not keep a pipe open that another program waits for. It is called before
// this process opens anything.
func CloseInherited() { _ = unix.CloseRange(ListenFD+1, math.MaxInt32, 0) }

// receive waits for the Setup, and for the descriptors that come with it.
func receive() (*Setup, []int, error) {
	buf, oob := make([]byte, MaxMessage), make([]byte, unix.CmsgSpace(4*250))
	var n, on int
	for {
		var err error
		n, on, _, _, err = unix.Recvmsg(ControlFD, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading what to build from descriptor %d (is this run by the server?): %w", ControlFD, err)
		}
		break
	}
	if n == 0 {
		return nil, nil, errors.New("the server went away before it said what to build")
	}
	setup := &Setup{}
	if err := setup.Decode(buf[:n]); err != nil {
		return nil, nil, fmt.Errorf("what the server said to build is not readable: %w", err)
	}
	if on == 0 {
		return setup, nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil || len(messages) != 1 {
		return nil, nil, fmt.Errorf("the folders that the server sent cannot be taken: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, nil, fmt.Errorf("the folders that the server sent cannot be taken: %w", err)
	}
	return setup, fds, nil
}

func send(r Report) error { return unix.Sendto(ControlFD, r.Encode(), unix.MSG_NOSIGNAL, nil) }

// listen takes over the socket that the driver bound.
func listen() (net.Listener, error) {
	f := os.NewFile(ListenFD, "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("taking the socket to serve on: %w", err)
	}
	return l, nil
}

// tether ends the process, and so everything in the sandbox, when the server
// that started it goes away.
func tether() {
	var one [1]byte
	for {
		n, err := unix.Read(ControlFD, one[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			os.Exit(0)
		}
	}
}

// ownPath is how this process alone can name what a descriptor of its leads to.
func ownPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
