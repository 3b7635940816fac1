package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deckhand/api"
)

// FrontEnd is a built single-page front end of the legacy server. It is its
// users' own: we only hand out what is in the folder.
type FrontEnd struct{ root *os.Root }

const (
	indexFile = "index.html"
	// maxIndex bounds what is read for a page; real ones have a few kilobytes.
	maxIndex = 1 << 20
	// immutable is for files whose names change with their content.
	immutable = "public, max-age=2592000, immutable"
	// frontEndRoute is what logs and metrics call it.
	frontEndRoute = "/{front_end...}"
)

// OpenFrontEnd opens the folder that the front end's build made.
func OpenFrontEnd(dir string) (*FrontEnd, error) {
	const advice = "name the build folder of the front end, which contains index.html and assets"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, advice)
	}
	f := &FrontEnd{root}
	if _, err := f.index(); err != nil {
		root.Close()
		return nil, fmt.Errorf("%s in %s cannot be read (%w): %s", indexFile, dir, err, advice)
	}
	return f, nil
}

// Close lets the folder go. A nil front end has none.
func (f *FrontEnd) Close() error {
	if f == nil {
		return nil
	}
	return f.root.Close()
}

// open opens a file that may be shown to anybody: a regular one inside the folder
// whose name, and whose folders' names, do not begin with a dot.
func (f *FrontEnd) open(name string) (*os.File, fs.FileInfo, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") {
			return nil, nil, fs.ErrNotExist
		}
	}
	if about, err := f.root.Stat(name); err != nil || !about.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, nil, fs.ErrNotExist
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, about, nil
}

func (f *FrontEnd) index() ([]byte, error) {
	file, _, err := f.open(indexFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	page, err := io.ReadAll(io.LimitReader(file, maxIndex+1))
	if err == nil && len(page) > maxIndex {
		err = errors.New("larger than 1 MiB")
	}
	return page, err
}

// serve hands a file out, packed if it lies there packed too, and says whether there is one.
func (f *FrontEnd) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	file, about, err := f.open(name)
	if err != nil {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	h.Del("Content-Security-Policy") // its workers would have it in place of the page's
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", immutable)
	}
	for _, packed := range []struct{ coding, suffix string }{{"br", ".br"}, {"gzip", ".gz"}} {
		small, aboutSmall, err := f.open(name + packed.suffix)
		if err != nil {
			continue
		}
		h.Set("Vary", "Accept-Encoding")
		if !accepts(r, packed.coding) {
			small.Close()
			continue
		}
		file.Close()
		file, about = small, aboutSmall
		h.Set("Content-Encoding", packed.coding)
		break
	}
	defer file.Close()
	http.ServeContent(w, r, "", about.ModTime(), file)
	return true
}

// accepts says whether the client takes a content coding.
func accepts(r *http.Request, coding string) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		text, ok := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		q, err := strconv.ParseFloat(text, 64)
		return !ok || err == nil && q > 0
	}
	return false
}

// webTypes are what browsers insist on. The system's own table differs from machine to machine.
var webTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json", ".wasm": "application/wasm",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif", ".ico": "image/x-icon",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".txt": "text/plain; charset=utf-8", ".xml": "application/xml",
}

func contentType(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if t := webTypes[ext]; t != "" {
		return t
	}
	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}
	return "application/octet-stream"
}

// serveFrontEnd answers for the paths that no route has, and says whether it did.
// Its files are code that anybody can have. Its page is for who is logged in, and
// only a browser is shown it for a path that does not exist: a program is told so.
func (d *Door) serveFrontEnd(w *recorder, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || unclean(r) || d.taken[firstPart(r.URL.Path)] {
		return false
	}
	w.route = frontEndRoute
	name := strings.TrimPrefix(r.URL.Path, "/")
	if path.Ext(name) != ".html" && d.FrontEnd.serve(w, r, name) {
		return true
	}
	if name != "" && !wantsPage(r) {
		return false
	}
	if _, f := d.identify(w, r); f != nil {
		if f.status == http.StatusUnauthorized && wantsPage(r) {
			_ = d.writeLogin(w, r, f.status)
		} else {
			f.write(w, plain)
		}
		return true
	}
	page, err := d.FrontEnd.index()
	if err != nil {
		d.Logger.Error("cannot read the front end's index.html", "request", w.id, "error", err)
		fail(http.StatusInternalServerError, api.CodeInternal, "The front end's index.html cannot be read. See the server log.").write(w, plain)
		return true
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", d.frontEndPolicy(page))
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(page)
	return true
}

var (
	inlineScript = regexp.MustCompile(`(?is)<script\b([^>]*)>(.*?)</script\s*>`)
	hasSource    = regexp.MustCompile(`(?i)\bsrc\s*=`)
)

// sourceForm is a host name with an optional port, as it may stand in a policy.
var sourceForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[0-9]{1,5})?$`)

// ValidSource reports whether host may be one of Config.FrontEndHosts.
func ValidSource(host string) bool { return len(host) <= 253 && sourceForm.MatchString(host) }

// frontEndPolicy is what the front end may do: run the scripts that it was built
// with, and those from the hosts that the operator allows, and talk to nobody but us
// and the ports of sandboxes, whatever an agent writes into a conversation.
// Its libraries write styles into elements; scripts in its page are known by their
// hashes. What listens in a sandbox may be shown in a frame.
func (d *Door) frontEndPolicy(page []byte) string {
	hosts, connect := "", "'self'"
	for _, host := range d.FrontEndHosts {
		hosts += " https://" + host
	}
	if ports := d.frames(); ports != "'none'" { // it looks whether something listens before it shows it
		connect += " " + ports
	}
	scripts := []string{"script-src 'self' 'wasm-unsafe-eval'" + hosts}
	for _, m := range inlineScript.FindAllSubmatch(page, -1) {
		if hasSource.Match(m[1]) {
			continue
		}
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(m[2])) // as the browser's parser does
		sum := sha256.Sum256([]byte(text))
		scripts = append(scripts, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	return strings.Join(append([]string{"default-src 'none'", strings.Join(scripts, " ")},
		"style-src 'self' 'unsafe-inline'"+hosts, "img-src 'self' data: blob:", "font-src 'self' data:"+hosts, "media-src 'self' data: blob:",
		"connect-src "+connect, "worker-src 'self' blob:", "manifest-src 'self'", "frame-src "+d.frames(),
		"form-action 'self'", "base-uri 'self'", "frame-ancestors 'none'"), "; ")
}

// legacyPage reports whether the request comes from a page of the legacy front end. It
// shows errors, and nothing of a successful response.
func (d *Door) legacyPage(c *call) bool { return d.FrontEnd != nil && c.browser }

// withMessage adds a message to a validation error: the legacy front end shows error or
// message of a response, and "Request failed with status code 422" if it has neither.
func withMessage(err error) error {
	if err == nil {
		return nil
	}
	f := *translate(err)
	invalid, ok := f.body.(*api.ValidationError)
	if !ok {
		return err
	}
	named := &api.ValidationError{Detail: slices.Clone(invalid.Detail)}
	for i, d := range named.Detail {
		if len(d.Loc) > 1 { // the place, such as body, means nothing to a person
			named.Detail[i].Loc = d.Loc[1:]
		}
	}
	f.body = struct {
		Detail  []api.FieldError `json:"detail"`
		Message string           `json:"message"`
	}{invalid.Detail, named.Error()}
	return &f
}

// pageKey is the key that a front end finds in a conversation and sends back,
// because it does not know of our cookie; nil where none is needed.
func (d *Door) pageKey(c *call) *string {
	if d.FrontEnd == nil {
		return nil
	}
	if c.who.Page {
		key, _ := presented(c.http)
		return &key
	}
	if !c.browser {
		return nil
	}
	cookie, err := d.loginOf(c.http)
	if err != nil {
		return nil
	}
	key, err := d.Gate.PageKey(cookie.Value)
	if err != nil {
		return nil
	}
	return &key
}
