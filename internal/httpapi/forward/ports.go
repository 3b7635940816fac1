package forward

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

// Forwarding says under which names the ports of sandboxes are served. What runs
// in a sandbox is not ours, so each port has a host of its own: its pages share no
// origin with ours, nor with each other. The zero value serves none.
type Forwarding struct {
	// Key makes the names unguessable. Who has it knows them all.
	Key [32]byte
	// Domain is the name below which they are. Browsers take every name below
	// localhost for this machine, so there it needs no DNS.
	Domain string
	// Scheme and Port complete the addresses. Below localhost they are those by
	// which the request came that asks for them.
	Scheme, Port string
}

// Route is what metrics call requests to ports of sandboxes.
const Route = "port of a sandbox"

// labelForm is the first part of a forwarded name: the port and 128 bits. No
// browser sends capitals, and canonicalHost leaves none.
var labelForm = regexp.MustCompile(`^p([1-9][0-9]{0,4})-[a-z2-7]{26}$`)

var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Label names a port of a conversation's sandbox. Knowing one is the permission to
// use that port, and says nothing about any other.
func (f *Forwarding) Label(id session.ID, port int) string {
	number := strconv.Itoa(port)
	mac := hmac.New(sha256.New, f.Key[:])
	mac.Write([]byte("deckhand port of a sandbox\x00" + string(id) + "\x00" + number))
	return "p" + number + "-" + labelEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// address returns the URL of a port for the browser, or "" if the client has no name for it.
func (f *Forwarding) address(r *http.Request, id session.ID, port int) string {
	scheme, at := f.Scheme, f.Port
	switch {
	case f.Domain == "":
		return ""
	case f.Domain == rest.LocalDomain:
		if !rest.OnThisMachine(r.Host) { // a proxy passed it on, for a browser elsewhere
			return ""
		}
		scheme = "http"
		if r.TLS != nil {
			scheme = "https"
		}
		_, at, _ = net.SplitHostPort(r.Host)
	}
	host := f.Label(id, port) + "." + f.Domain
	if at != "" {
		host = net.JoinHostPort(host, at)
	}
	return scheme + "://" + host
}

// LabelOf is the part of a Host header before the domain of the forwarded names,
// and the port it is for. The port is 0 if the name has another form.
func (f *Forwarding) LabelOf(host string) (label string, port int, below bool) {
	if f.Domain == "" {
		return "", 0, false
	}
	label, below = strings.CutSuffix(rest.CanonicalHost(host), "."+f.Domain)
	if m := labelForm.FindStringSubmatch(label); below && m != nil {
		if n, _ := strconv.Atoi(m[1]); n <= 65535 {
			port = n
		}
	}
	return label, port, below
}

// maxLabels bounds what is remembered of labels; those above it are found anew.
const maxLabels = 10_000

// labels remembers which conversation a label is of. It does not last: after a
// restart they are found again among the workspaces there are.
type labels struct {
	mu    sync.Mutex
	known map[string]session.ID
}

func (l *labels) get(label string) (session.ID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := l.known[label]
	return id, ok
}

func (l *labels) put(label string, id session.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLabels {
		l.known = map[string]session.ID{}
	}
	l.known[label] = id
}

func (l *labels) drop(label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, label)
}

// Find finds the conversation that a label is of. session.ErrNotFound if there
// is none, or none any more. Names that have to be looked for are counted like wrong
// keys: who tries names cannot keep the server busy.
func (d *Handlers) Find(r *http.Request, label string, port int) (session.ID, error) {
	if d.Workspaces == nil || port == 0 {
		return "", session.ErrNotFound
	}
	id, known := d.labels.get(label)
	if !known {
		if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
			return "", rest.TooMany(a, "Too many requests to unknown host names.")
		}
		var err error
		if id, err = d.findLabel(r.Context(), label, port); err != nil {
			return "", err
		}
		d.labels.put(label, id)
	}
	row, err := d.Index.Row(r.Context(), id)
	if err == nil && row.Deleted {
		err = session.ErrNotFound
	}
	if errors.Is(err, session.ErrNotFound) {
		d.Forget(label)
	}
	return id, err
}

// Has reports whether a port of a sandbox has this name.
func (d *Handlers) Has(ctx context.Context, label string, port int) bool {
	if _, known := d.labels.get(label); known || d.Workspaces == nil {
		return known
	}
	_, err := d.findLabel(ctx, label, port)
	return err == nil
}

// Forget makes the next request to a name find its conversation anew.
func (d *Handlers) Forget(label string) { d.labels.drop(label) }

func (d *Handlers) findLabel(ctx context.Context, label string, port int) (session.ID, error) {
	ids, err := d.Workspaces.Known(ctx)
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if subtle.ConstantTimeCompare([]byte(d.Forwarding.Label(id, port)), []byte(label)) == 1 {
			return id, nil
		}
	}
	return "", session.ErrNotFound
}

// Frames are the sources of what may be shown in a frame: what listens in a sandbox.
func (f *Forwarding) Frames() string {
	if f.Domain == "" {
		return "'none'"
	}
	return "http://*." + f.Domain + ":*" // which https matches too
}
