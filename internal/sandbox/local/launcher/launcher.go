package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
)

// Argument is what the runner's program is started with to be a launcher.
const Argument = "launch"

// maxMessage bounds an order and its answer.
const maxMessage = 16 << 10

// answer is how an order went. The process travels with it.
type answer struct {
	PID    int    `json:"pid,omitempty"`
	Failed string `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Launcher starts runners.
type Launcher struct {
	program *os.File
	log     *slog.Logger

	mu     sync.Mutex
	direct bool
	helper *helper
	lost   int
	closed bool
}

// helper is the process that starts runners.
type helper struct {
	conn    *net.UnixConn
	process *os.Process
	ended   chan struct{}
	answers atomic.Int64
}

// New makes a launcher for the runner's program, which stays the caller's. A direct one starts runners
// from this process, which is cheaper if there is just one.
func New(program *os.File, direct bool, log *slog.Logger) *Launcher {
	return &Launcher{program: program, direct: direct, log: log}
}

// patience is how long a helper with orders may answer none of them. It needs milliseconds for one; if it
// is stopped or hangs, it is killed.
const patience = 5 * time.Second

// maxPatience bounds the wait for one answer of a helper that answers others.
const maxPatience = 12 * patience

// maxLost is how often a helper may be lost, one after the other, before none is started any more.
const maxLost = 3

// Attempts is how often Start is to be tried while it returns ErrLost.
const Attempts = maxLost + 1

// ErrLost says that the helper has ended. It may have started a runner, so that another one needs a new
// control connection; closing the old one ends the first.
var ErrLost = errors.New("the process that starts sandboxes has ended")

// refusal is what the helper said instead of starting a runner.
type refusal string

func (r refusal) Error() string { return string(r) }

// Start starts a runner that waits for its setup. The other end of its control connection
// is ours: the answer of the helper comes through it, before anything of the runner's.
func (l *Launcher) Start(ctx context.Context, o Order, f Files, ours *net.UnixConn) (*Process, error) {
	o.Unified = f.Group != nil
	h := l.get()
	if h == nil {
		return l.startHere(o, f)
	}
	p, err := h.start(ctx, o, f, ours)
	var refused refusal
	switch {
	case err == nil:
		l.mu.Lock()
		l.lost = 0
		l.mu.Unlock()
		return p, nil
	case errors.As(err, &refused):
		// This process may be allowed what the helper is not: rules of the machine can go by programs.
		if p, err = l.startHere(o, f); err == nil {
			l.mu.Lock()
			l.direct = true
			l.mu.Unlock()
		}
		return p, err
	case ctx.Err() != nil:
		return nil, ctx.Err() // when the caller closes the connection, the helper ends what it started for it
	default:
		l.drop(h, err)
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
}

// startHere starts a runner from this process.
func (l *Launcher) startHere(o Order, f Files) (*Process, error) {
	p, err := start(o, f, l.program)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			if _, err := syscall.Wait4(p.PID, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}()
	return p, nil
}

// get returns the helper, and starts it if need be. nil if there is none.
func (l *Launcher) get() *helper {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.direct || l.closed || l.lost >= maxLost {
		return nil
	}
	if l.helper == nil {
		var err error
		if l.helper, err = run(l.program); err != nil {
			l.direct = true
			return nil
		}
	}
	return l.helper
}

// drop ends a helper that has failed. The next start tries another one.
func (l *Launcher) drop(h *helper, why error) {
	l.mu.Lock()
	if l.helper == h {
		l.helper = nil
		l.lost++
		l.log.Warn("the process that starts sandboxes has failed and is replaced", "pid", h.process.Pid, "error", why)
	}
	l.mu.Unlock()
	h.kill()
}

// kill ends the helper, also one that is stopped.
func (h *helper) kill() {
	h.conn.Close()
	_ = h.process.Kill()
}

// Close ends the helper. Runners run on.
func (l *Launcher) Close() {
	l.mu.Lock()
	h := l.helper
	l.helper, l.closed = nil, true
	l.mu.Unlock()
	if h != nil {
		h.kill()
		select {
		case <-h.ended:
		case <-time.After(patience): // even a killed process can hang in the kernel
		}
	}
}

// run starts a helper.
func run(program *os.File) (*helper, error) {
	theirs, conn, err := Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/fd/" + strconv.Itoa(programFD), Args: []string{"runner", Argument}, Dir: "/", Env: environment,
		ExtraFiles: []*os.File{theirs, program},
		// A session of its own: what a terminal sends to the server is not for it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	h := &helper{conn: conn, process: cmd.Process, ended: make(chan struct{})}
	go func() { defer close(h.ended); _ = cmd.Wait() }()
	return h, nil
}

// Pair makes a connection for messages: an end to pass on, and one to keep.
func Pair() (theirs *os.File, ours *net.UnixConn, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs, f := os.NewFile(uintptr(pair[1]), "control"), os.NewFile(uintptr(pair[0]), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return theirs, c.(*net.UnixConn), nil
}

// start has a runner started and waits for the answer.
func (h *helper) start(ctx context.Context, o Order, f Files, ours *net.UnixConn) (*Process, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	fds := []int{int(f.Control.Fd()), int(f.Listener.Fd()), int(f.Log.Fd())}
	if f.Group != nil {
		fds = append(fds, int(f.Group.Fd()))
	}
	end := h.watch(ctx, ours)
	_ = h.conn.SetWriteDeadline(time.Now().Add(patience)) // the connection may be full of orders that it does not read
	_, _, err = h.conn.WriteMsgUnix(body, unix.UnixRights(fds...), nil)
	var a answer
	var got []int
	if err == nil {
		got, err = receive(ours, &a)
	}
	if why := end(); err != nil && why != nil {
		err = why
	}
	if err == nil {
		h.answers.Add(1)
	}
	if err == nil && a.Error != "" {
		err = refusal(a.Error)
	}
	if err == nil && len(got) != 1 {
		err = errors.New("the launcher did not send the process")
	}
	if err != nil {
		closeAll(got)
		return nil, err
	}
	p := &Process{PID: a.PID, fd: got[0]}
	if a.Failed != "" {
		p.Failed = errors.New(a.Failed)
	}
	return p, nil
}

// watch ends the wait for an answer that does not come. The function it returns ends the watch and says why
// it gave up, nil if it did not.
func (h *helper) watch(ctx context.Context, ours *net.UnixConn) (end func() error) {
	answered, result := make(chan struct{}), make(chan error, 1)
	go func() {
		err := h.awaitAnswer(ctx, answered)
		if err != nil {
			_ = ours.SetReadDeadline(time.Unix(1, 0))
		}
		result <- err
	}()
	return func() error {
		close(answered)
		err := <-result
		_ = ours.SetReadDeadline(time.Time{})
		return err
	}
}

// awaitAnswer waits while the helper can be expected to answer.
func (h *helper) awaitAnswer(ctx context.Context, answered <-chan struct{}) error {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	seen := h.answers.Load()
	for range maxPatience / patience {
		select {
		case <-answered:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ended: // it may have left a runner that keeps the connection open
			return errors.New("it has ended")
		case <-tick.C:
		}
		now := h.answers.Load()
		if now == seen {
			break
		}
		seen = now // it has many orders
	}
	return fmt.Errorf("it did not answer for %v", patience)
}

// receive reads a message and the descriptors that came with it.
func receive(c *net.UnixConn, into any) ([]int, error) {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*8))
	n, on, _, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the other side has gone")
	}
	var fds []int
	if on > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil || len(messages) != 1 {
			return nil, fmt.Errorf("descriptors cannot be taken: %v", err)
		}
		if fds, err = unix.ParseUnixRights(&messages[0]); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(buf[:n], into); err != nil {
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// The descriptors of a helper.
const (
	ordersFD  = box.ControlFD
	programFD = box.ControlFD + 1
)
