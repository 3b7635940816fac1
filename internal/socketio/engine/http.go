package engine

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refusal is an error as the protocol tells it.
type refusal struct {
	status  int
	Code    int    `json:"code"`
	Message string `json:"message"`
}

var (
	unknownTransport = refusal{http.StatusBadRequest, 0, "Transport unknown"}
	unknownSession   = refusal{http.StatusBadRequest, 1, "Session ID unknown"}
	badMethod        = refusal{http.StatusBadRequest, 2, "Bad handshake method"}
	badRequest       = refusal{http.StatusBadRequest, 3, "Bad request"}
	tooLarge         = refusal{http.StatusRequestEntityTooLarge, 3, "Payload too large"}
	goingAway        = refusal{http.StatusServiceUnavailable, 3, "Server is going away"}
	unknownVersion   = refusal{http.StatusBadRequest, 5, "Unsupported protocol version"}
)

func forbidden(why string) refusal { return refusal{http.StatusForbidden, 4, why} }

func (f refusal) answer(w http.ResponseWriter) {
	body, _ := json.Marshal(f) // a number and a string
	head(w, "application/json")
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

// head writes the headers of all responses. They must not be cached or shown as a page.
func head(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// ServeHTTP answers a request of the protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		goingAway.answer(w)
		return
	}
	defer s.work.Done()
	q := r.URL.Query()
	transport := q.Get("transport")
	switch {
	case !s.allows(transport):
		unknownTransport.answer(w)
	case q.Get("EIO") != "4":
		unknownVersion.answer(w)
	case q.Has("j"): // JSONP, which revision 4 does not have
		badRequest.answer(w)
	case !q.Has("sid"):
		s.handshake(w, r, transport)
	default:
		c := s.find(q.Get("sid"))
		if c == nil {
			unknownSession.answer(w)
			return
		}
		if err := s.o.Continue(c.req, r); err != nil {
			forbidden(err.Error()).answer(w)
			return
		}
		switch {
		case transport == WebSocket:
			c.serveUpgrade(w, r)
		case r.Method == http.MethodGet:
			c.servePoll(w, r)
		case r.Method == http.MethodPost:
			c.servePost(w, r)
		default:
			badRequest.answer(w)
		}
	}
}

// opening is the data of the first packet.
type opening struct {
	SID          string   `json:"sid"`
	Upgrades     []string `json:"upgrades"`
	PingInterval int64    `json:"pingInterval"`
	PingTimeout  int64    `json:"pingTimeout"`
	MaxPayload   int64    `json:"maxPayload"`
}

func (c *Conn) opening(upgrades ...string) packet {
	o := c.server.o
	data, _ := json.Marshal(opening{ // numbers and strings
		SID: c.id, Upgrades: append([]string{}, upgrades...),
		PingInterval: o.PingInterval.Milliseconds(), PingTimeout: o.PingTimeout.Milliseconds(), MaxPayload: o.MaxPayload,
	})
	return packet{kind: kindOpen, data: data}
}

// handshake makes a connection.
func (s *Server) handshake(w http.ResponseWriter, r *http.Request, transport string) {
	if r.Method != http.MethodGet {
		badMethod.answer(w)
		return
	}
	if transport == WebSocket && !asksForWebSocket(r) {
		badRequest.answer(w)
		return
	}
	if err := s.o.Allow(r); err != nil {
		forbidden(err.Error()).answer(w)
		return
	}
	c := s.newConn(r)
	if transport == WebSocket {
		c.serveWebSocket(w, r)
		return
	}
	if err := s.start(c); err != nil {
		goingAway.answer(w)
		return
	}
	var upgrades []string
	if s.allows(WebSocket) {
		upgrades = append(upgrades, WebSocket)
	}
	// If this does not arrive, the client does not poll, and the heartbeat ends the connection.
	_ = c.answer(w, []packet{c.opening(upgrades...)})
}

func asksForWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Method == http.MethodGet && slices.ContainsFunc(r.Header.Values("Upgrade"), func(v string) bool {
		return strings.EqualFold(strings.TrimSpace(v), WebSocket)
	})
}

// answer writes a polling body.
func (c *Conn) answer(w http.ResponseWriter, packets []packet) error {
	size := int64(payloadLen(packets))
	head(w, "text/plain; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	ctl := http.NewResponseController(w)
	_ = ctl.SetWriteDeadline(time.Now().Add(c.server.o.patience(size))) // where it can be set
	if err := writePayload(w, packets); err != nil {
		return err
	}
	// Some writers cannot be flushed, and write when the request is done.
	if err := ctl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
