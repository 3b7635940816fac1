package rest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/jsonbound"
)

// How slowly a body may come: a client has so long before its first byte counts, and then for each byte. It may not be
// silent for long, however much it sent before.
const (
	bodyGrace   = 15 * time.Second
	bodySilence = 20 * time.Second
	minBodyRate = 8 << 10 // bytes per second
	FirstPiece  = 16 << 10
)

// Bodies bounds the memory that request bodies take while they are read and answered, in bytes. Zero is the default.
type Bodies struct {
	// PerUser is for all requests of one user together, or from one address without a key (default 64 MiB).
	PerUser int64
	// Total is for all requests together (default 512 MiB). Requests without a key have a quarter of it, and deliveries of
	// git providers three quarters of that, so that they leave room for logins.
	Total int64
}

func (b Bodies) orDefault() Bodies {
	if b.PerUser <= 0 {
		b.PerUser = 64 << 20
	}
	if b.Total <= 0 {
		b.Total = 512 << 20
	}
	return b
}

// Intake counts the memory of bodies.
type Intake struct {
	most  Bodies
	mu    sync.Mutex
	total int64
	users map[string]int64 // strangers is among them
}

// NewIntake makes an Intake with these bounds.
func NewIntake(most Bodies) *Intake {
	return &Intake{most: most.orDefault(), users: map[string]int64{}}
}

// strangers is where those without a key are counted together.
const strangers = "\x00"

// Deliverers is where those who deliver webhooks are counted together, among the strangers.
const Deliverers = strangers + "webhooks\x00"

// Stranger is the name under which requests without a key are counted. No user has such a name.
func Stranger(r *http.Request) string { return strangers + ClientHost(r) }

// ClientHost is the address of the client, or of the proxy before it, without the port.
func ClientHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Payer is the name under which the memory of a request is counted.
func Payer(r *http.Request, user string) string {
	if user == "" {
		return Stranger(r)
	}
	return user
}

// Take sets memory aside for a user, or says that there is none.
func (i *Intake) Take(user string, n int64) *Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	var f *Fault
	switch {
	case i.users[user]+n > i.most.PerUser:
		f = Fail(http.StatusTooManyRequests, api.CodeRateLimited, "Too many large requests at once: their bodies exceed "+Size(i.most.PerUser)+" in total. Try again when some have completed.")
	case i.total+n > i.most.Total, strings.HasPrefix(user, strangers) && i.users[strangers]+n > i.most.Total/4,
		strings.HasPrefix(user, Deliverers) && i.users[Deliverers]+n > i.most.Total/16*3:
		f = Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "The server is busy with large requests. Try again in a few seconds.")
	default:
		i.add(user, n)
		return nil
	}
	f.Header = http.Header{"Connection": {"close"}, "Retry-After": {"2"}}
	return f
}

// Held is the memory that is set aside now.
func (i *Intake) Held() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.total
}

// Give gives memory back.
func (i *Intake) Give(user string, n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.add(user, -n)
}

func (i *Intake) add(user string, n int64) {
	i.total += n
	names := []string{user}
	if strings.HasPrefix(user, strangers) {
		names = append(names, strangers)
	}
	if strings.HasPrefix(user, Deliverers) {
		names = append(names, Deliverers)
	}
	for _, name := range names {
		if i.users[name] += n; i.users[name] == 0 {
			delete(i.users, name)
		}
	}
}

// receive reads a whole body, within the limit, at the pace of the client but not slower than minBodyRate. Memory is set
// aside as bytes arrive, not as they are announced. Release must be called when the body is of no more use, also after
// an error.
func (i *Intake) receive(w http.ResponseWriter, r *http.Request, user string, limit int64) (body []byte, release func(), err error) {
	var held int64
	user = Payer(r, user)
	release = func() { i.Give(user, held) }
	announced := r.ContentLength // -1: not announced
	if announced > limit {
		return nil, release, TooLarge(limit)
	}
	from := &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	for announced < 0 || int64(len(body)) < announced {
		if len(body) == cap(body) {
			next := min(max(2*int64(cap(body)), FirstPiece), limit+1)
			if announced >= 0 {
				next = min(next, announced)
			}
			if f := i.Take(user, next-int64(cap(body))); f != nil {
				return nil, release, f
			}
			held = next
			body = append(make([]byte, 0, next), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, release, TooLarge(limit)
		case err == io.EOF && (announced < 0 || int64(len(body)) == announced):
			return body, release, nil
		case err != nil:
			return nil, release, brokenBody(err)
		}
	}
	from.done()
	return body, release, nil
}

// What one body of JSON may decode to. The largest that clients send are settings and deliveries of git providers, with a
// few thousand values; images and recordings are long strings, which count as one.
const (
	MaxValues = 50_000
	// ValueMemory is what a decoded value takes at most, in bytes: a member of a small map, decoded twice.
	ValueMemory = 256
)

// ReceiveJSON is receive for a body that will be decoded. It refuses what would take much memory or time, and sets memory
// aside for what the body decodes to.
func (i *Intake) ReceiveJSON(w http.ResponseWriter, r *http.Request, user string, limit int64) ([]byte, func(), error) {
	body, release, err := i.receive(w, r, user, limit)
	if err != nil {
		return nil, release, err
	}
	values, err := jsonbound.Check(body, jsonbound.Limits{Values: MaxValues, Depth: MaxDepth + 1})
	switch {
	case errors.Is(err, jsonbound.ErrValues):
		return nil, release, Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The request body has more than "+strconv.FormatInt(MaxValues, 10)+" JSON values.")
	case err != nil:
		return nil, release, tooDeep()
	}
	user = Payer(r, user)
	decoded := int64(len(body)) + int64(values)*ValueMemory
	if f := i.Take(user, decoded); f != nil {
		return nil, release, f
	}
	return body, func() { i.Give(user, decoded); release() }, nil
}

func brokenBody(err error) *Fault {
	f := Fail(http.StatusBadRequest, api.CodeBadRequest, "The request body ended early.")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f = Fail(http.StatusRequestTimeout, api.CodeBadRequest, "The request body arrived too slowly. Send at least "+strconv.FormatInt(minBodyRate>>10, 10)+" KiB per second, without pauses of "+seconds(bodySilence)+" seconds.")
	}
	f.Header = http.Header{"Connection": {"close"}}
	return f
}

// pacedBody is a body whose client must keep a minimum rate. Only the time that is spent waiting for the client counts.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	got     int64
	waited  time.Duration
}

// NewPacedBody makes the client of a body keep the minimum rate.
func NewPacedBody(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	return &pacedBody{ReadCloser: body, control: http.NewResponseController(w)}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	begin := time.Now()
	allowed := bodyGrace + time.Duration(b.got)*time.Second/minBodyRate
	_ = b.control.SetReadDeadline(begin.Add(min(allowed-b.waited, bodySilence))) // a test without a network has none
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	b.waited += time.Since(begin)
	if err != nil {
		b.done()
	}
	return n, err
}

// done ends the deadline, which would otherwise end the request while it is answered.
func (b *pacedBody) done() { _ = b.control.SetReadDeadline(time.Time{}) }
