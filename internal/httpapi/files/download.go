package files

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"path"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// Limits of what is shown.
const (
	MaxText  = 10 << 20
	MaxMedia = 50 << 20
	// OneRead is up to where a text is read once and kept; longer ones are read twice instead.
	OneRead = 64 << 10
)

const (
	aboutSelectFile = "Images, PDFs and videos (by file extension) are returned as a data: URL, up to 50 MiB; other files as text, up to 10 MiB. A file that is not UTF-8 is a 415. " + aboutNames
	aboutZip        = "Symbolic links are stored as links; sockets, pipes and devices are omitted. The archive is created while it is sent: on an error the connection is closed before the end. Does not start the sandbox."
)

// media are the files that a browser shows in another way than as text. SVG is a
// text, and a program too.
var media = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".bmp": "image/bmp", ".webp": "image/webp", ".ico": "image/x-icon", ".avif": "image/avif",
	".pdf": "application/pdf", ".mp4": "video/mp4", ".webm": "video/webm", ".ogg": "video/ogg", ".mov": "video/quicktime",
}

type selectFileQuery struct {
	ID    string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	File  string `query:"file" required:"true" minLength:"1" maxLength:"12288" doc:"File, relative to the workspace."`
	Unfit string `query:"unfit" enum:"error,told" default:"error" doc:"Response for a file that is missing, too large, not text or unreadable: error returns an error, told returns 200 with the reason in the field unfit."`
}

// selectFile shows a file. However large it is, it is never all in memory.
func (d *Handlers) selectFile(w http.ResponseWriter, r *http.Request, c *rest.Call, q selectFileQuery) error {
	file, err := inWorkspace("file", q.File)
	if err != nil {
		return err
	}
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	v, err := d.view(ctx, c, q.ID)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	defer v.Close()
	r = r.WithContext(ctx)
	if kind := media[strings.ToLower(path.Ext(file))]; kind != "" {
		err = sendMedia(w, r, v, file, kind)
	} else {
		err = sendText(w, r, v, file)
	}
	if errors.Is(err, sandbox.ErrBinary) {
		err = binaryFile(q.File)
	}
	why, err := tell(q.Unfit, fileFault(rest.WhyEnded(ctx, err), "file", "a regular file"))
	if why != nil {
		rest.WriteJSON(w, http.StatusOK, api.FileContent{Unfit: why})
	}
	return err
}

func sendText(w http.ResponseWriter, r *http.Request, v *workspace.View, file string) error {
	var first textCheck
	if _, err := v.Read(r.Context(), file, &first); err != nil {
		return err
	}
	if !first.state.whole() {
		return sandbox.ErrBinary
	}
	if first.size <= OneRead {
		rest.WriteJSON(w, http.StatusOK, api.FileContent{Code: string(first.head), ETag: sandbox.Sum(first.head)})
		return nil
	}
	out := rest.NewDownload(w, "application/json")
	out.Opening = `{"code":"`
	text, sum := &textEscape{to: out}, sha256.New()
	return out.All(func() error {
		if _, err := v.Read(r.Context(), file, io.MultiWriter(text, sum)); err != nil {
			return err
		}
		if !text.state.whole() {
			return sandbox.ErrBinary
		}
		return out.Put(`","etag":"` + hex.EncodeToString(sum.Sum(nil)) + `"}`)
	})
}

func sendMedia(w http.ResponseWriter, r *http.Request, v *workspace.View, file, kind string) error {
	info, err := v.Stat(r.Context(), file)
	if err != nil {
		return err
	}
	size := info.Size
	if !info.Mode.IsRegular() { // a link: see what it leads to, before it is too late to say no
		var n counter
		if _, err := v.Read(r.Context(), file, &n); err != nil {
			return err
		}
		size = int64(n)
	}
	if size > MaxMedia {
		return tooLargeToShow(MaxMedia)
	}
	out := rest.NewDownload(w, "application/json")
	out.Opening = `{"code":"data:` + kind + `;base64,`
	sum := sha256.New()
	out.Limit = base64.StdEncoding.EncodedLen(MaxMedia) + len(`","etag":""}`) + hex.EncodedLen(sum.Size())
	return out.All(func() error {
		encoder := base64.NewEncoder(base64.StdEncoding, out)
		if _, err := v.Read(r.Context(), file, io.MultiWriter(encoder, sum)); err != nil {
			return err
		}
		if err := encoder.Close(); err != nil {
			return err
		}
		return out.Put(`","etag":"` + hex.EncodeToString(sum.Sum(nil)) + `"}`)
	})
}

func tooLargeToShow(limit int64) error {
	return rest.Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The file is larger than the "+rest.Size(limit)+" that are shown here; download it instead.")
}

// counter counts up to where a file is too large.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	if *n += counter(len(b)); *n > MaxMedia {
		return 0, tooLargeToShow(MaxMedia)
	}
	return len(b), nil
}

// textCheck looks at a file as it comes by, and keeps its beginning.
type textCheck struct {
	state text8
	head  []byte
	size  int64
}

func (t *textCheck) Write(b []byte) (int, error) {
	if t.size += int64(len(b)); t.size > MaxText {
		return 0, tooLargeToShow(MaxText)
	}
	if !t.state.take(b) {
		return 0, sandbox.ErrBinary
	}
	if t.size <= OneRead {
		t.head = append(t.head, b...)
	}
	return len(b), nil
}

// textEscape writes what comes by as the inside of a JSON string.
type textEscape struct {
	to    *rest.Download
	state text8
	size  int64
	buf   []byte
}

func (t *textEscape) Write(b []byte) (int, error) {
	if t.size += int64(len(b)); t.size > MaxText {
		return 0, rest.ErrTooMuch
	}
	if !t.state.take(b) { // it was a text when we looked
		return 0, sandbox.ErrBinary
	}
	const digits = "0123456789abcdef"
	t.buf = t.buf[:0]
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			t.buf = append(t.buf, '\\', c)
		case c < 0x20:
			t.buf = append(t.buf, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			t.buf = append(t.buf, c)
		}
	}
	if _, err := t.to.Write(t.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// text8 checks UTF-8 that comes in pieces, which may end within a character.
type text8 struct {
	part [utf8.UTFMax]byte
	n    int
}

// take reports whether the text is still one.
func (t *text8) take(b []byte) bool {
	for t.n > 0 && len(b) > 0 {
		t.part[t.n] = b[0]
		t.n, b = t.n+1, b[1:]
		if utf8.FullRune(t.part[:t.n]) {
			if !utf8.Valid(t.part[:t.n]) {
				return false
			}
			t.n = 0
		}
	}
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				t.n = copy(t.part[:], b[i:])
				b = b[:i]
			}
			break
		}
	}
	return utf8.Valid(b)
}

// whole is false in the middle of a character.
func (t *text8) whole() bool { return t.n == 0 }

// zipDirectory packs the workspace while it is sent.
func (d *Handlers) zipDirectory(w http.ResponseWriter, r *http.Request, c *rest.Call, p rest.InConversation) error {
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	v, err := d.view(ctx, c, p.ID)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	defer v.Close()
	out := rest.NewDownload(w, "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="workspace.zip"`)
	if r.Method == http.MethodHead {
		return out.All(func() error { return nil })
	}
	return rest.WhyEnded(ctx, out.All(func() error { return v.Archive(ctx, sandbox.Zip, out) }))
}

func describeFile(r huma.Registry, o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "Success", Content: rest.JSONContent(r.Schema(reflect.TypeFor[api.FileContent](), true, ""))}
}

func describeZip(_ huma.Registry, o *huma.Operation) {
	o.Responses["200"] = &huma.Response{Description: "The ZIP archive", Content: map[string]*huma.MediaType{"application/zip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
}
