package launcher

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

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
	for {
		var o Order
		fds, err := receive(conn, &o)
		if err != nil {
			return nil // the server has gone, or says what no server says
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
