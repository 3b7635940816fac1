package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/outbound"
)

// refusal is an answer of our own.
type refusal struct {
	status  int
	verdict Verdict
	text    string // for the person in the shell
	reason  string // for the ledger
}

func (r *refusal) Error() string { return r.text }

// refuse is a refusal by the policy.
func refuse(why string) *refusal { return &refusal{http.StatusForbidden, Refused, why, why} }

// misuse is a refusal of what is no request to a proxy.
func misuse(why string) *refusal { return &refusal{http.StatusBadRequest, Refused, why, why} }

// explain says what became of an attempt to reach a host. Neither the sandbox
// nor the ledger, which users read, is told addresses of the server's network.
func explain(err error, h host, port uint16) *refusal {
	at := h.with(port)
	var (
		known     *refusal
		blocked   *outbound.BlockedError
		dns       *net.DNSError
		untrusted *tls.CertificateVerificationError
		failed    = func(status int, text string) *refusal {
			return &refusal{status, Failed, text, text}
		}
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &blocked) && blocked.Never:
		return &refusal{http.StatusForbidden, Refused, fmt.Sprintf("%s has a %s address; connections to it are never allowed", at, blocked.Kind), err.Error()}
	case errors.As(err, &blocked):
		return &refusal{
			http.StatusForbidden, Refused,
			fmt.Sprintf("%s has a %s address, and only public addresses are allowed; the operator can allow it with --egress-private", at, blocked.Kind),
			fmt.Sprintf("refused to connect to %s: it is a %s address; start the server with --egress-private %s to permit it", blocked.Asked.Host, blocked.Kind, blocked.Asked),
		}
	case errors.Is(err, context.Canceled):
		return &refusal{http.StatusBadGateway, Allowed, "the request was given up", "the client went away"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return failed(http.StatusBadGateway, "host not found: "+h.String())
	case errors.As(err, &dns) && dns.Timeout():
		return failed(http.StatusGatewayTimeout, "the host name "+h.String()+" could not be resolved in time")
	case errors.As(err, &dns):
		return failed(http.StatusBadGateway, "the host name "+h.String()+" cannot be resolved right now")
	case errors.As(err, &untrusted):
		return failed(http.StatusBadGateway, "the certificate of "+at+" is not trusted by this server; the operator can add the issuer to the system's certificates")
	case timedOut(err):
		return failed(http.StatusGatewayTimeout, at+" does not answer")
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed(http.StatusBadGateway, at+" refuses connections")
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return failed(http.StatusBadGateway, at+" cannot be reached from this server")
	case hungUp(err):
		return failed(http.StatusBadGateway, at+" closed the connection without an answer")
	}
	return &refusal{http.StatusBadGateway, Failed, at + " sent an invalid response", storable(err.Error(), 500)}
}

func hungUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	// This error of net/http has no name. It is the same thing, seen a moment earlier.
	return strings.Contains(err.Error(), "server closed idle connection")
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &t) && t.Timeout())
}

// lingering is how long a client may go on sending a request that was answered
// already. Closing at once might take the answer away from it.
const lingering = 5 * time.Second

// answer sends a refusal in place of a host's answer.
func (r *refusal) answer(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if req.ContentLength != 0 || r.status == http.StatusServiceUnavailable { // the client must retry the latter later
		h.Set("Connection", "close")
	}
	if req.ContentLength != 0 && req.Context().Err() == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingering))
	}
	w.WriteHeader(r.status)
	fmt.Fprintf(w, "deckhand: %s\n", r.text)
}

// raw is the refusal of a tunnel. Most clients show nothing of it but the status
// line, so the sentence is there as well.
func (r *refusal) raw() string {
	phrase := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, "deckhand: "+r.text)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\ndeckhand: %s\n",
		r.status, phrase, len("deckhand: ")+len(r.text)+1, r.text)
}
