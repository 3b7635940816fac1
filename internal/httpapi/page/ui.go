package page

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

// site is the web page as it was built: one document for all its addresses, and the
// files that it loads, whose names change with what is in them.
type site struct {
	built fs.FS
	// head and rest are the document around the place where what depends on the request goes.
	head, rest []byte
	// packed holds the compressed files by name, each compressed at its first request; nil where
	// compression does not make the file smaller.
	packed map[string]func() []byte
}

// pageFolder is where the build puts the files, and the path they are served under.
const pageFolder = "ui"

// newPage reads what was built. It is nil if nothing was, as in a checkout that only ever
// saw the Go tools.
func newPage(built fs.FS) (*site, error) {
	if built == nil {
		return nil, nil
	}
	index, err := fs.ReadFile(built, rest.IndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	const start = "<head>"
	at := bytes.Index(index, []byte(start)) + len(start)
	if err == nil && at < len(start) {
		err = fmt.Errorf("%s has no %s", rest.IndexFile, start)
	}
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(built, pageFolder)
	p := &site{built, index[:at], index[at:], map[string]func() []byte{}}
	for _, e := range entries {
		name, small := strings.CutSuffix(e.Name(), storedPacked)
		if small {
			p.packed[name] = sync.OnceValue(func() []byte {
				text, _ := fs.ReadFile(built, path.Join(pageFolder, e.Name())) // it was just listed
				return text
			})
			continue
		}
		p.packed[name] = sync.OnceValue(func() []byte {
			text, err := p.file(name)
			if err != nil {
				return nil
			}
			return packed(text)
		})
	}
	return p, err
}

func (p *site) file(name string) ([]byte, error) {
	return readBuilt(p.built, path.Join(pageFolder, name))
}

// servePage serves the same document for all addresses of the page, which routes by itself. The
// document has no private content.
func (d *Handlers) servePage(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	if d.ui == nil {
		return writePage(w, http.StatusServiceUnavailable, render("unbuilt.html", map[string]any{"Root": rest.RootOf(r)}))
	}
	as, err := d.visitor(r)
	if err != nil {
		return err
	}
	return d.writeUI(w, r, http.StatusOK, as)
}

// WriteMissing is the page, which says that there is nothing; who is not logged in sees the login.
func (d *Handlers) WriteMissing(w http.ResponseWriter, r *http.Request, stranger *rest.Fault) error {
	if stranger != nil {
		return d.WriteLogin(w, r, stranger.Status)
	}
	as, err := d.visitor(r)
	if err != nil {
		as = VisitorUnknown
	}
	return d.writeUI(w, r, http.StatusNotFound, as)
}

// What the page is told of who asks for it, so that it need not ask where the answer is no.
const (
	// VisitorStranger is not logged in.
	VisitorStranger = "stranger"
	// VisitorNew is logged in and has stored no settings.
	VisitorNew = "new"
	// VisitorAstray got the page in place of another, by a link on another site: browsers send
	// no cookie then, so the visitor may be logged in.
	VisitorAstray = "astray"
	// VisitorUnknown is a visitor whose login is unknown.
	VisitorUnknown = ""
)

func (d *Handlers) visitor(r *http.Request) (string, error) {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "none", "same-origin":
	default:
		return VisitorUnknown, nil
	}
	if _, err := d.Guard.LoginOf(r); err != nil {
		return VisitorStranger, nil
	}
	who, err := d.Guard.Browser(r)
	if err != nil {
		if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
			return "", rest.TooMany(a, "Too many requests with an invalid login.")
		}
		return VisitorStranger, nil
	}
	if _, err := d.Settings.Get(r.Context(), who.User); errors.Is(err, settings.ErrNotFound) {
		return VisitorNew, nil
	}
	return VisitorUnknown, nil
}

// writeUI sends the document. Its links are relative to a base, because a proxy may have
// put a path before ours that we do not know.
func (d *Handlers) writeUI(w http.ResponseWriter, r *http.Request, status int, as string) error {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", d.uiPolicy(nonce))
	h.Set("Referrer-Policy", "no-referrer")
	if d.Guard.Secure(r) || d.Guard.Origin == "" && rest.OnThisMachine(r.Host) { // elsewhere browsers complain about it
		h.Set("Cross-Origin-Opener-Policy", "same-origin") // who opened us has no hold of our window
	}
	w.WriteHeader(status)
	_, err := fmt.Fprintf(w, "%s\n    <base href=\"%s\" />\n    <script src=\"assets/deckhand/theme.js\"></script>\n    <meta name=\"csp-nonce\" content=\"%s\" />\n    <meta name=\"deckhand-visitor\" content=\"%s\" />%s",
		d.ui.head, html.EscapeString(rest.RootOf(r)), nonce, as, d.ui.rest)
	return err
}

// uiPolicy is what the page may do: run its own scripts and talk to us alone, whatever an
// agent writes into a conversation. Its editor makes styles, which have the nonce.
func (d *Handlers) uiPolicy(nonce string) string {
	return strings.Join([]string{"default-src 'none'", "script-src 'self'", "style-src 'self' 'nonce-" + nonce + "'",
		"img-src 'self' data: blob:", "media-src 'self' blob:", "font-src 'self'", "connect-src 'self'", "manifest-src 'self'", "worker-src 'self'", "frame-src " + framesOf(d.Frames),
		"form-action 'self'", "base-uri 'self'", "frame-ancestors 'none'"}, "; ")
}

// The files of the installable web app, at the root because a service worker can only serve what is
// below it.
const (
	manifestFile = "manifest.webmanifest"
	workerFile   = "sw.js"
)

// serveAppFile gives one of them. Their names never change, so browsers ask each time.
func (d *Handlers) serveAppFile(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	name := path.Base(r.URL.Path)
	if d.ui == nil {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "File not found.")
	}
	text, err := fs.ReadFile(d.ui.built, name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	if name == manifestFile {
		h.Set("Content-Type", "application/manifest+json")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", "default-src 'none'") // the worker asks for nothing
	_, err = w.Write(text)
	return err
}

// The frame in which diagrams are drawn, the script in it, and the library that this script loads. The frame has no origin,
// so what it loads must be open to others; only its document and script have names that do not change with their content.
const (
	diagramFrame   = "diagram.html"
	diagramScript  = "diagram.js"
	diagramLibrary = "mermaid."
)

// frameHeaders are what the files of the diagram frame need in place of those of the page.
func frameHeaders(h http.Header, name string) {
	if name == diagramFrame {
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts; frame-ancestors 'self'")
	}
	if name == diagramFrame || name == diagramScript {
		h.Set("Cache-Control", "no-cache")
	}
	if name == diagramScript || strings.HasPrefix(name, diagramLibrary) {
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
}

// framesOf are the sources that the page may show in a frame: its own for diagrams, and forwarded ports.
func framesOf(others string) string {
	if others == "'none'" {
		return "'self'"
	}
	return "'self' " + others
}

// serveUI gives the page's files. Their names change with their content, so browsers may
// keep them.
func (d *Handlers) serveUI(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	name := r.PathValue("name")
	if d.ui == nil || d.ui.packed[name] == nil {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "File not found.")
	}
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	var text []byte
	if rest.Accepts(r, "gzip") {
		text = d.ui.packed[name]()
	}
	if text != nil {
		h.Set("Content-Encoding", "gzip")
	} else {
		var err error
		if text, err = d.ui.file(name); err != nil {
			return err
		}
	}
	h.Set("Content-Type", rest.ContentType(name))
	h.Set("Cache-Control", rest.Immutable)
	frameHeaders(h, name)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, err := w.Write(text)
	return err
}
