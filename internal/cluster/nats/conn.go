package nats

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connectTimeout bounds one attempt to connect, and flushTimeout how long Subscribe waits for the server.
	connectTimeout = 5 * time.Second
	flushTimeout   = 5 * time.Second
	// Between two attempts to connect is a pause, which grows.
	firstPause, longestPause = 50 * time.Millisecond, 2 * time.Second
	// A connection on which the server does not answer for two pings is given up.
	pingEvery = 10 * time.Second
	// maxPending is how many bytes wait to be sent before more is lost, and maxWaiting how many messages wait for a
	// subscriber.
	maxPending = 4 << 20
	maxWaiting = 4096
	// maxMessage is how large a message may be that is received; larger ones are lost, as are those with which more than
	// maxWaitingBytes would wait.
	maxMessage      = 1 << 20
	maxWaitingBytes = 8 << 20
)

// ErrRefused says that the server does not let us in.
var ErrRefused = errors.New("the NATS server refuses the connection")

// Conn is a connection to one of several servers of a NATS cluster. Make it with Connect.
type Conn struct {
	address Address
	name    string
	log     *slog.Logger

	mu      sync.Mutex
	subs    map[int]*subscription
	next    int
	pending []byte // what is to be sent; nil without a connection
	online  bool
	version string          // of the NATS server
	pongs   []chan struct{} // who waits for the answers to pings, in their order
	lost    int64
	limit   int64         // maximum size of a message that the server accepts
	wake    chan struct{} // has a value when something is pending

	stop    context.CancelFunc
	stopped chan struct{}
}

type subscription struct {
	subject string
	waiting chan []byte
	size    atomic.Int64 // of what waits
}

// Connect connects in the background, and again whenever a connection ends. It waits for the first attempt. The
// error is ErrRefused if no server lets us in; a server that cannot be reached is tried again later.
func Connect(ctx context.Context, a Address, name string, log *slog.Logger) (*Conn, error) {
	c := &Conn{address: a, name: name, log: log, limit: maxMessage, subs: map[int]*subscription{}, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	life, stop := context.WithCancel(context.Background())
	c.stop = stop
	first := make(chan error, 1)
	go c.run(life, first)
	select {
	case err := <-first:
		if errors.Is(err, ErrRefused) {
			c.Close()
			return nil, err
		}
		return c, nil
	case <-ctx.Done():
		c.Close()
		return nil, ctx.Err()
	}
}

// Close ends the connection and all subscriptions. What is pending may be lost: see Flush.
func (c *Conn) Close() {
	c.stop()
	<-c.stopped
}

// Online reports whether there is a connection, and Lost is how many messages were not sent.
func (c *Conn) Online() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.online
}

// Version returns the version of the server, "" without a connection.
func (c *Conn) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.online {
		return ""
	}
	return c.version
}

// Lost returns how many messages were not sent because there was no connection, too many were pending, or they were too large.
func (c *Conn) Lost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// MaxPayload returns the maximum size of a message: that of the last server, or the default of NATS before the first connection.
func (c *Conn) MaxPayload() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.limit)
}

// Publish sends a message, or loses it. It does not block.
func (c *Conn) Publish(subject string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.online || len(c.pending)+len(data) > maxPending || int64(len(data)) > c.limit { // the server would close the connection after a message that is too large
		c.lost++
		return
	}
	c.pending = append(c.pending, "PUB "+subject+" "+strconv.Itoa(len(data))+"\r\n"...)
	c.pending = append(append(c.pending, data...), "\r\n"...)
	c.poke()
}

// poke wakes the writer; mu is held.
func (c *Conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Subscribe calls handle for the messages of a subject, one after the other, until stop is called, which waits for
// handle to return. If there is a connection, the server knows of the subscription when Subscribe returns.
func (c *Conn) Subscribe(subject string, handle func(data []byte)) (stop func(), err error) {
	s := &subscription{subject: subject, waiting: make(chan []byte, maxWaiting)}
	stopping, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopping:
				return
			case data := <-s.waiting:
				s.size.Add(-int64(len(data)))
				handle(data)
			}
		}
	}()
	c.mu.Lock()
	c.next++
	id := c.next
	c.subs[id] = s
	if c.online {
		c.pending = append(c.pending, subscribeLine(id, s)...)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = c.Flush(ctx) // without a connection it is told to the next server
	return sync.OnceFunc(func() {
		c.mu.Lock()
		delete(c.subs, id)
		if c.online {
			c.pending = append(c.pending, "UNSUB "+strconv.Itoa(id)+"\r\n"...)
			c.poke()
		}
		c.mu.Unlock()
		close(stopping)
		<-ended
	}), nil
}

func subscribeLine(id int, s *subscription) string {
	return "SUB " + s.subject + " " + strconv.Itoa(id) + "\r\n"
}

// errOffline says that there is no connection.
var errOffline = errors.New("there is no connection to NATS")

// Flush waits until the server has taken everything that was published before.
func (c *Conn) Flush(ctx context.Context) error {
	done := make(chan struct{})
	c.mu.Lock()
	if !c.online {
		c.mu.Unlock()
		return errOffline
	}
	c.ping(done)
	c.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ping sends a ping; mu is held. done is closed when it is answered, or the connection has ended.
func (c *Conn) ping(done chan struct{}) {
	c.pending = append(c.pending, "PING\r\n"...)
	c.pongs = append(c.pongs, done)
	c.poke()
}

// run connects until life ends.
func (c *Conn) run(life context.Context, first chan<- error) {
	defer close(c.stopped)
	pause := firstPause
	told := ""
	for server := 0; life.Err() == nil; server++ {
		conn, in, said, err := c.address.open(life, server, c.name)
		if err == nil {
			c.begin(said) // before Connect returns
		}
		select {
		case first <- err:
		default:
		}
		if err == nil {
			if told != "" {
				c.log.Warn("connected to NATS again", "server", conn.RemoteAddr().String())
			}
			told, pause = "", firstPause
			err = c.serve(life, conn, in)
		}
		if life.Err() != nil {
			return
		}
		if text := err.Error(); text != told { // once for each outage
			c.log.Warn("no connection to NATS: what other servers change is noticed later", "error", err)
			told = text
		}
		select {
		case <-life.Done():
			return
		case <-time.After(pause + rand.N(pause)):
		}
		pause = min(2*pause, longestPause)
	}
}

// serve uses a connection until it ends.
func (c *Conn) serve(life context.Context, conn net.Conn, in *bufio.Reader) error {
	ctx, cancel := context.WithCancelCause(life)
	var writer sync.WaitGroup
	defer writer.Wait()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer c.end()
	c.log.Debug("connected to NATS", "server", conn.RemoteAddr().String())
	writer.Go(func() { cancel(c.write(ctx, conn)) })
	err := c.read(in)
	cancel(err)
	return context.Cause(ctx)
}

// begin makes a connection the current one, and sends all subscriptions to its server.
func (c *Conn) begin(said info) {
	c.learn(said)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.online, c.version, c.pending = true, said.Version, nil
	for id, s := range c.subs {
		c.pending = append(c.pending, subscribeLine(id, s)...)
	}
	c.poke()
}

// learn stores the limit in an INFO message of the server. It is at most maxMessage, above which no member accepts messages.
func (c *Conn) learn(said info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if said.MaxPayload > 0 {
		c.limit = min(said.MaxPayload, maxMessage)
	}
}

// end lets go of those who wait for the connection.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.online, c.pending = false, nil
	for _, done := range c.pongs {
		close(done)
	}
	c.pongs = nil
}

// write sends what is pending, and pings.
func (c *Conn) write(ctx context.Context, conn net.Conn) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	var unanswered [2]chan struct{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if late := unanswered[0]; late != nil {
				select {
				case <-late:
				default:
					return errors.New("the NATS server does not answer")
				}
			}
			unanswered[0], unanswered[1] = unanswered[1], make(chan struct{})
			c.mu.Lock()
			c.ping(unanswered[1])
			c.mu.Unlock()
		case <-c.wake:
		}
		c.mu.Lock()
		out := c.pending
		c.pending = nil
		c.mu.Unlock()
		if len(out) == 0 {
			continue
		}
		if err := conn.SetWriteDeadline(time.Now().Add(2 * pingEvery)); err != nil {
			return err
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
	}
}

// read handles what the server says.
func (c *Conn) read(in *bufio.Reader) error {
	for {
		line, err := readLine(in)
		if err != nil {
			return err
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "MSG":
			if err := c.message(in, rest); err != nil {
				return err
			}
		case "PING":
			c.mu.Lock()
			full := len(c.pending) > 2*maxPending
			c.pending = append(c.pending, "PONG\r\n"...)
			c.poke()
			c.mu.Unlock()
			if full {
				return errors.New("the NATS server does not read")
			}
		case "PONG":
			c.mu.Lock()
			if len(c.pongs) > 0 {
				close(c.pongs[0])
				c.pongs = c.pongs[1:]
			}
			c.mu.Unlock()
		case "-ERR":
			if !strings.Contains(rest, "Permissions Violation") { // the server ends the connection
				return refusal(rest)
			}
			c.log.Error("NATS does not allow what Deckhand needs: give its user permission to publish and subscribe to deckhand.>", "error", clipped(strings.Trim(rest, "'")))
		case "INFO": // the limits may have changed
			var said info
			if json.Unmarshal([]byte(rest), &said) == nil {
				c.learn(said)
			}
		case "+OK":
		default:
			return fmt.Errorf("the NATS server sent %q, which is not part of the protocol", clipped(verb))
		}
	}
}

// message reads one and hands it to its subscription.
func (c *Conn) message(in *bufio.Reader, head string) error {
	fields := strings.Fields(head) // subject, subscription, [reply,] size
	if len(fields) != 3 && len(fields) != 4 {
		return errors.New("the NATS server sent a message without a size")
	}
	id, err := strconv.Atoi(fields[1])
	size, err2 := strconv.Atoi(fields[len(fields)-1])
	if err = errors.Join(err, err2); err != nil || size < 0 {
		return fmt.Errorf("the NATS server sent a message of a size that is not allowed: %q", clipped(fields[len(fields)-1]))
	}
	if size > maxMessage {
		_, err := io.CopyN(io.Discard, in, int64(size)+2)
		return err
	}
	data := make([]byte, size+2)
	if _, err := io.ReadFull(in, data); err != nil {
		return err
	}
	c.mu.Lock()
	s := c.subs[id]
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	if s.size.Add(int64(size)) <= maxWaitingBytes {
		select {
		case s.waiting <- data[:size]:
			return nil
		default:
		}
	}
	s.size.Add(-int64(size)) // the subscriber is too slow: it finds out by itself
	return nil
}

// readLine reads a line of the protocol. The buffer bounds its length.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("the NATS server sent a line that is too long")
	}
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

func clipped(s string) string { return s[:min(len(s), 40)] }

// refusal is what an error of the server means.
func refusal(text string) error {
	text = strings.Trim(text, "' ")
	if low := strings.ToLower(text); strings.Contains(low, "authorization") || strings.Contains(low, "authentication") {
		return fmt.Errorf("%w: %s; check the user, password, token or credentials of --nats-url", ErrRefused, clipped(text))
	}
	return fmt.Errorf("the NATS server says: %s", clipped(text))
}

// info is what a server says first, and hello what we answer.
type info struct {
	Version     string `json:"version"`
	TLSRequired bool   `json:"tls_required"`
	Nonce       string `json:"nonce"`
	MaxPayload  int64  `json:"max_payload"`
}

type hello struct {
	Verbose     bool   `json:"verbose"`
	Pedantic    bool   `json:"pedantic"`
	TLSRequired bool   `json:"tls_required"`
	Name        string `json:"name"`
	Lang        string `json:"lang"`
	Version     string `json:"version"`
	Protocol    int    `json:"protocol"`
	User        string `json:"user,omitempty"`
	Pass        string `json:"pass,omitempty"`
	Token       string `json:"auth_token,omitempty"`
	JWT         string `json:"jwt,omitempty"`
	NKey        string `json:"nkey,omitempty"`
	Signature   string `json:"sig,omitempty"`
}

// greet exchanges the first words.
func greet(conn net.Conn, in *bufio.Reader, h hello) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("CONNECT " + string(line) + "\r\nPING\r\n")); err != nil {
		return err
	}
	for {
		line, err := readLine(in)
		if err != nil {
			return fmt.Errorf("the NATS server ended the connection: %w", err)
		}
		switch verb, rest, _ := strings.Cut(line, " "); strings.ToUpper(verb) {
		case "PONG":
			return nil
		case "-ERR":
			return refusal(rest)
		}
	}
}
