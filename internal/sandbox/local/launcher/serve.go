package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/cgroup"
)

// cleanTime is how long a spare may take to end when the server was killed.
const cleanTime = 5 * time.Second

// Serve makes this process a launcher: it starts runners until the server has gone.
func Serve() error {
	orders, program := os.NewFile(ordersFD, "orders"), os.NewFile(programFD, "program")
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(programFD)
	c, err := net.FileConn(orders)
	orders.Close()
	if err != nil {
		return err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("a launcher is started by the server")
	}
	defer conn.Close()
	s := &service{program: program}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go reap(ended)
	var spare []string // groups of the last one; the one before is a sandbox, or was removed
	for {
		var o Order
		fds, err := receive(conn, &o)
		if err != nil { // the server has gone, or says what no server says
			ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
			defer cancel()
			_ = cgroup.Remove(ctx, spare)
			return nil
		}
		if o.Spare {
			spare = o.Groups
		}
		go s.obey(o, fds)
	}
}

type service struct{ program *os.File }

// obey starts one runner. The answer goes where the runner's own will go.
func (s *service) obey(o Order, fds []int) {
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "order")
		defer f.Close()
		files = append(files, f)
	}
	if len(files) != 3 && (len(files) != 4 || !o.Unified) {
		return
	}
	f := Files{Control: files[0], Listener: files[1], Log: files[2]}
	if o.Unified {
		f.Group = files[3]
	}
	var a answer
	var rights []byte
	p, err := start(o, f, s.program)
	if err != nil {
		a.Error = err.Error()
	} else {
		defer p.Close()
		a.PID, rights = p.PID, unix.UnixRights(p.fd)
		if p.Failed != nil {
			a.Failed = p.Failed.Error()
		}
	}
	body, err := json.Marshal(a)
	if err == nil {
		err = unix.Sendmsg(int(f.Control.Fd()), body, rights, nil, unix.MSG_NOSIGNAL)
	}
	if err != nil && p != nil { // the server cannot know of it
		_ = p.Signal(syscall.SIGKILL)
	}
}

// reap waits for all runners that have ended.
func reap(ended <-chan os.Signal) {
	for range ended {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
}
