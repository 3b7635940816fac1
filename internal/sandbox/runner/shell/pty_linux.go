package shell

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tty is the runner's end of a pseudo terminal. It is in non-blocking mode, so
// a goroutine that waits for output costs no thread.
type tty struct {
	*os.File
	plain unix.Termios // the modes that shells of the model want
}

// openTTY makes a terminal. The second file is the end for the process, which
// the caller closes after giving it away.
func openTTY(rows, cols uint16) (*tty, *os.File, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) { // a fresh devpts without the link
		fd, err = unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("no terminal can be opened: %w", err)
	}
	t := &tty{File: os.NewFile(uintptr(fd), "ptmx")}
	other, err := otherEnd(fd)
	if err != nil {
		t.Close()
		return nil, nil, fmt.Errorf("no terminal can be opened: %w", err)
	}
	if err := t.resize(rows, cols); err != nil {
		t.Close()
		other.Close()
		return nil, nil, err
	}
	return t, other, nil
}

// otherEnd opens the end for the process. The kernel can do it without a path;
// some that only pretend to be Linux cannot.
func otherEnd(fd int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	if peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags); errno == 0 {
		return os.NewFile(peer, "tty"), nil
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
}

// control does something with a descriptor without making it block.
func (t *tty) control(f func(fd int) error) error { return control(t.File, f) }

func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func (t *tty) resize(rows, cols uint16) error {
	if rows == 0 || cols == 0 {
		return nil
	}
	return t.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// setPlain turns off echo and every change to what is written, and remembers
// these modes. Lines and keys like Ctrl-C keep their meaning.
func (t *tty) setPlain() error {
	return t.control(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		modes.Lflag &^= unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ECHONL
		modes.Oflag &^= unix.OPOST
		t.plain = *modes
		return unix.IoctlSetTermios(fd, unix.TCSETS, modes)
	})
}

// tidy undoes what a command did to the modes and, if asked, throws away what it
// was sent and did not read, which the next one must not take for its own.
func (t *tty) tidy(flush bool) {
	_ = t.control(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil || !flush && *modes == t.plain {
			return err
		}
		plain := t.plain
		return unix.IoctlSetTermios(fd, unix.TCSETSF, &plain)
	})
}

// byLine reports whether what is sent is handed on line by line, in which case
// the kernel drops what is longer than maxLine.
func (t *tty) byLine() bool {
	yes := false
	_ = t.control(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		yes = err == nil && modes.Lflag&unix.ICANON != 0
		return err
	})
	return yes
}

// maxLine is the longest line that a terminal takes, its end included.
const maxLine = 4095

// send types something. It gives up if the input is not read for a while.
func (t *tty) send(b []byte, patience time.Duration) error {
	_ = t.SetWriteDeadline(time.Now().Add(patience))
	_, err := t.Write(b)
	return err
}

// foreground is the process group that the keyboard belongs to, 0 if none.
func (t *tty) foreground() int {
	group := 0
	_ = t.control(func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return max(group, 0)
}

// signal sends SIGINT, SIGQUIT or SIGTSTP to the foreground, whatever the modes
// are.
func (t *tty) signal(sig syscall.Signal) {
	err := t.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig)) })
	if group := t.foreground(); err != nil && group > 1 {
		_ = syscall.Kill(-group, sig)
	}
}

// signalOf returns the signal that a key means now, 0 if it is only a byte. Sending the signal
// directly is faster than through the terminal, which matters when the command ends and the next
// one starts.
func (t *tty) signalOf(key byte) syscall.Signal {
	var sig syscall.Signal
	_ = t.control(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil || modes.Lflag&unix.ISIG == 0 {
			return err
		}
		switch key {
		case modes.Cc[unix.VINTR]:
			sig = syscall.SIGINT
		case modes.Cc[unix.VQUIT]:
			sig = syscall.SIGQUIT
		case modes.Cc[unix.VSUSP]:
			sig = syscall.SIGTSTP
		}
		return nil
	})
	return sig
}

// rest reads, without waiting, what is still there after a deadline ended Read.
func rest(file *os.File, buf []byte) int {
	n := 0
	_ = control(file, func(fd int) (err error) {
		for {
			n, err = unix.Read(fd, buf)
			if !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	})
	return max(n, 0)
}
