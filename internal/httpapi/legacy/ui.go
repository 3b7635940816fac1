package legacy

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
)

// FrontEnd is a built single-page front end of the legacy server. It is its
// users' own: we only hand out what is in the folder.
type FrontEnd struct{ root *os.Root }

const (
	// maxIndex bounds what is read for a page; real ones have a few kilobytes.
	maxIndex = 1 << 20
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
		return nil, fmt.Errorf("%s in %s cannot be read (%w): %s", rest.IndexFile, dir, err, advice)
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

// open opens a public file: a regular file inside the folder, where neither its name nor the
// names of its folders begin with a dot.
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
	file, _, err := f.open(rest.IndexFile)
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
	h.Set("Content-Type", rest.ContentType(name))
	h.Del("Content-Security-Policy") // its workers would have it in place of the page's
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", rest.Immutable)
	}
	for _, packed := range []struct{ coding, suffix string }{{"br", ".br"}, {"gzip", ".gz"}} {
		small, aboutSmall, err := f.open(name + packed.suffix)
		if err != nil {
			continue
		}
		h.Set("Vary", "Accept-Encoding")
		if !rest.Accepts(r, packed.coding) {
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

// ServeFrontEnd serves the paths that no route has, and reports whether it did. Its files are
// public. Its page needs a login, and for a path that does not exist only browsers get the page:
// programs get an error.
func (d *Handlers) ServeFrontEnd(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if path.Ext(name) != ".html" && d.FrontEnd.serve(w, r, name) {
		return true
	}
	if name != "" && !rest.WantsPage(r) {
		return false
	}
	if f := d.Identify(w, r); f != nil {
		if f.Status == http.StatusUnauthorized && rest.WantsPage(r) {
			_ = d.WriteLogin(w, r, f.Status)
		} else {
			f.Write(w, rest.Plain)
		}
		return true
	}
	page, err := d.FrontEnd.index()
	if err != nil {
		d.Logger.ErrorContext(r.Context(), "cannot read the front end's index.html", "request", w.Header().Get("X-Request-Id"), "error", err)
		rest.Fail(http.StatusInternalServerError, api.CodeInternal, "The front end's index.html cannot be read. See the server log.").Write(w, rest.Plain)
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

// frontEndPolicy limits the front end: it may run the scripts that it was built with and those
// from hosts that the operator allows, and connect only to this server and the ports of
// sandboxes, whatever an agent writes into a conversation.
// Its libraries write styles into elements; scripts in its page are known by their
// hashes. What listens in a sandbox may be shown in a frame.
func (d *Handlers) frontEndPolicy(page []byte) string {
	hosts, connect := "", "'self'"
	for _, host := range d.FrontEndHosts {
		hosts += " https://" + host
	}
	if ports := d.Frames; ports != "'none'" { // it looks whether something listens before it shows it
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
		"connect-src "+connect, "worker-src 'self' blob:", "manifest-src 'self'", "frame-src "+d.Frames,
		"form-action 'self'", "base-uri 'self'", "frame-ancestors 'none'"), "; ")
}

// FromPage reports whether the request comes from a page of the legacy front end. It
// shows errors, and nothing of a successful response.
func (d *Handlers) FromPage(c *rest.Call) bool { return d.FrontEnd != nil && c.Browser }

// WithMessage adds a message to a validation error: the legacy front end shows error or
// message of a response, and "Request failed with status code 422" if it has neither.
func WithMessage(err error) error {
	if err == nil {
		return nil
	}
	f := *status.Of(err)
	invalid, ok := f.Body.(*api.ValidationError)
	if !ok {
		return err
	}
	named := &api.ValidationError{Detail: slices.Clone(invalid.Detail)}
	for i, d := range named.Detail {
		if len(d.Loc) > 1 { // the place, such as body, means nothing to a person
			named.Detail[i].Loc = d.Loc[1:]
		}
	}
	f.Body = struct {
		*api.ValidationError
		Message string `json:"message"`
	}{invalid, named.Error()}
	return &f
}

// PageKey is the key that a front end finds in a conversation and sends back,
// because it does not know of our cookie; nil where none is needed.
func (d *Handlers) PageKey(c *rest.Call) *string {
	if d.FrontEnd == nil {
		return nil
	}
	if c.Who.Page {
		key, _ := rest.Presented(c.HTTP)
		return &key
	}
	if !c.Browser {
		return nil
	}
	cookie, err := d.Guard.LoginOf(c.HTTP)
	if err != nil {
		return nil
	}
	key, err := d.Gate.PageKey(cookie.Value)
	if err != nil {
		return nil
	}
	return &key
}

// CheckFrontEnd returns an error if the front end cannot be served or an allowed host is invalid.
func CheckFrontEnd(dir string, allow []string) error {
	for _, host := range allow {
		if !ValidSource(host) {
			return fmt.Errorf("--legacy-ui-allow %q is not a host name with an optional port", host)
		}
	}
	if dir == "" {
		return nil
	}
	front, err := OpenFrontEnd(dir)
	if err != nil {
		return fmt.Errorf("--legacy-ui: %w", err)
	}
	return front.Close()
}
