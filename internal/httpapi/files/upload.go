package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/idempotency"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Limits of an upload.
const (
	MaxUpload = 100 << 20
	MaxFiles  = 1000
)

const aboutUpload = "Files are stored in the workspace under their base names, up to 100 MiB per request. Existing files are not replaced: if a name is taken, the file gets a new one, such as \"a (1).txt\". " +
	"Starts the sandbox if needed. Files that cannot be stored are listed in skipped_files; if the request fails, none of its files are kept. " +
	"With an Idempotency-Key, the same files under the same names count as the same request. If the server crashes after storing the files but before recording the key, a retry stores them again under new names."

// uploadFiles stores what is sent, while it is sent.
func (d *Handlers) uploadFiles(w http.ResponseWriter, r *http.Request, c *rest.Call, p rest.InConversation) error {
	id, err := d.WorkspaceOf(r.Context(), c, p.ID)
	if err != nil {
		return err
	}
	if r.ContentLength > MaxUpload {
		return rest.TooLarge(MaxUpload)
	}
	r.Body = rest.NewPacedBody(w, http.MaxBytesReader(w, r.Body, MaxUpload))
	parts, err := r.MultipartReader()
	if err != nil {
		f := rest.Fail(http.StatusUnsupportedMediaType, api.CodeBadRequest, "Send the files as multipart/form-data in the field files.")
		f.Header = http.Header{"Connection": {"close"}}
		return f
	}
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	u := &upload{d: d, id: id, parts: parts, request: []string{r.Method, r.URL.Path, r.URL.RawQuery}}
	if keys := r.Header["Idempotency-Key"]; len(keys) > 0 {
		err = u.once(ctx, w, c, keys)
	} else {
		err = u.run(ctx, w)
	}
	return rest.WhyEnded(ctx, err)
}

// upload is one request.
type upload struct {
	d     *Handlers
	id    session.ID
	parts *multipart.Reader
	// request is what tells this request from another under the same Idempotency-Key.
	request []string
	box     *sandbox.Sandbox
	stored  []string
	answer  api.Uploaded
}

// once stores the files, or gives the answer of the same request before. Only
// the files count: a client that sends them again puts other lines between them.
func (u *upload) once(ctx context.Context, w http.ResponseWriter, c *rest.Call, keys []string) error {
	key, err := rest.OneKey(keys)
	if err != nil {
		return err
	}
	leave, err := u.d.Retries.Enter(ctx, c, key)
	if err != nil {
		return err
	}
	defer leave()
	before, err := u.d.Retries.Store.Answer(ctx, c.Who.User, key)
	switch {
	case err == nil:
		if err := u.each(func(file) error { return nil }); err != nil {
			return err
		}
		if before.Request != idempotency.Digest(u.request...) {
			return rest.OtherRequest()
		}
		return u.d.Retries.Repeat(ctx, w, c, before)
	case !errors.Is(err, idempotency.ErrNotFound):
		return err
	}
	held := rest.NewHeldAnswer(w.Header())
	if err := u.run(ctx, held); err != nil {
		return err
	}
	if err := u.d.Retries.Keep(context.WithoutCancel(ctx), c, key, idempotency.Digest(u.request...), held); err != nil {
		return err
	}
	w.WriteHeader(held.Status)
	_, err = w.Write(held.Body.Bytes())
	return err
}

// run stores the files and answers.
func (u *upload) run(ctx context.Context, w http.ResponseWriter) error {
	box, release, err := u.d.Workspaces.Use(ctx, u.id)
	if err != nil {
		return err
	}
	defer release()
	u.box, u.answer = box, api.Uploaded{UploadedFiles: []string{}, SkippedFiles: []api.SkippedFile{}}
	if err := u.each(func(f file) error { return u.take(ctx, f) }); err != nil {
		u.undo(ctx)
		return err
	}
	u.answer.FileURLs = u.answer.UploadedFiles
	rest.WriteJSON(w, http.StatusOK, u.answer)
	return nil
}

// undo removes what was stored, so that a retry does not store it twice. It goes on as long as the sandbox answers.
func (u *upload) undo(ctx context.Context) {
	for _, name := range u.stored {
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		err := u.box.Remove(one, sandbox.InWorkspace(name))
		gone := one.Err() != nil || errors.Is(err, sandbox.ErrLost)
		cancel()
		if err != nil {
			u.d.Logger.WarnContext(ctx, "cannot remove a file of a failed upload", "session", u.id, "error", err)
		}
		if gone {
			return
		}
	}
}

// file is a part of the request. Its name is empty when it cannot be stored, and reason says why.
type file struct {
	name, reason, field string
	data                io.Reader
}

// each reads the parts one after the other and remembers what they were.
func (u *upload) each(do func(file) error) error {
	files := 0
	for n := 0; ; n++ {
		part, err := u.parts.NextPart()
		if err == io.EOF && files == 0 {
			return api.Invalid("missing", "This field is required.", "files")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return brokenUpload(err)
		}
		if n == MaxFiles {
			return rest.Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "At most "+strconv.FormatInt(MaxFiles, 10)+" files can be uploaded at once.")
		}
		sum := sha256.New()
		f := readPart(part)
		if part.FormName() == "files" {
			files++
		}
		f.data = io.TeeReader(part, sum)
		if err := do(f); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, f.data); err != nil {
			return brokenUpload(err)
		}
		u.request = append(u.request, f.field, f.name, hex.EncodeToString(sum.Sum(nil)))
	}
}

func brokenUpload(err error) error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return rest.TooLarge(MaxUpload)
	}
	f := rest.Fail(http.StatusBadRequest, api.CodeBadRequest, "The upload ended early.")
	f.Header = http.Header{"Connection": {"close"}}
	return f
}

// take stores one file, or says why not. An error ends the request.
func (u *upload) take(ctx context.Context, f file) error {
	skip := func(reason string) error {
		u.answer.SkippedFiles = append(u.answer.SkippedFiles, api.SkippedFile{Name: api.EncodeName([]byte(f.field)), Reason: reason})
		return nil
	}
	if f.name == "" {
		return skip(f.reason)
	}
	name, leave, err := u.fresh(ctx, f.name)
	if err == nil {
		defer leave()
		err = u.write(ctx, name, f.data)
	}
	var broken *rest.Fault
	switch {
	case err == nil:
		u.stored = append(u.stored, name)
		u.answer.UploadedFiles = append(u.answer.UploadedFiles, sandbox.Workspace+"/"+api.EncodeName([]byte(name)))
		return nil
	case errors.As(err, &broken), ctx.Err() != nil, errors.Is(err, sandbox.ErrLost):
		return err
	case errors.Is(err, fs.ErrExist):
		return skip("A file with this name was created at the same time. Upload it again.")
	case errors.Is(err, fs.ErrPermission):
		return skip("Permission denied in the workspace.")
	case errors.Is(err, errNames):
		return skip("Too many files with this name.")
	case errors.Is(err, errNoRoom):
		return skip("The workspace has reached its disk limit. Delete files first.")
	}
	u.d.Logger.WarnContext(ctx, "cannot store an uploaded file", "session", u.id, "error", err)
	return skip("The file could not be stored: " + strings.ToValidUTF8(err.Error(), "?") + ".")
}

// write stores a file. When what is sent breaks off, so does the writing: the
// sandbox must not take half a file for a whole one.
func (u *upload) write(ctx context.Context, name string, data io.Reader) error {
	room, err := u.d.Workspaces.Room(ctx, u.id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	source := &watched{from: &bounded{from: data, left: room}, failed: cancel}
	_, err = u.box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace(name), New: true}, source)
	if errors.Is(source.err, errNoRoom) {
		return errNoRoom
	}
	if source.err != nil {
		return brokenUpload(source.err)
	}
	return err
}

// errNoRoom says that a file does not fit into the workspace.
var errNoRoom = errors.New("the workspace has reached its disk limit; delete files first")

// bounded fails when there is more than fits.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errNoRoom
	}
	return n, err
}

// watched notices when a reader fails.
type watched struct {
	from   io.Reader
	failed func()
	err    error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.from.Read(b)
	if err != nil && err != io.EOF {
		w.err = err
		w.failed()
	}
	return n, err
}

// readPart finds out what a part is.
func readPart(part *multipart.Part) file {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	raw, given := params["filename"]
	switch {
	case err != nil:
		return file{reason: "The Content-Disposition of this part is not valid."}
	case params["name"] != "files":
		return file{field: params["name"], reason: "Only files in the field files are accepted."}
	case !given:
		return file{field: params["name"], reason: "This part has no file name."}
	}
	if !strings.Contains(part.Header.Get("Content-Disposition"), "filename*") {
		raw = formEscapes.Replace(raw)
	}
	f := file{field: raw}
	f.name, f.reason = baseName(raw)
	return f
}

// formEscapes are how browsers send what cannot stand in a header.
var formEscapes = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// maxName is how many bytes a name may have on the file systems there are.
const maxName = 255

// baseName is the last part of a name, if it can be one.
func baseName(raw string) (name, reason string) {
	name = raw[strings.LastIndexByte(raw, '/')+1:]
	if len(name) > 2 && name[1] == ':' && name[2] == '\\' || strings.HasPrefix(name, `\\`) { // a path of Windows
		name = name[strings.LastIndexByte(name, '\\')+1:]
	}
	switch {
	case name == "" || name == "." || name == "..":
		return "", "The file name is empty or names a folder."
	case strings.ContainsRune(name, 0):
		return "", "The file name contains a NUL character."
	case len(name) > maxName:
		return "", "The file name is longer than " + strconv.FormatInt(maxName, 10) + " bytes."
	}
	return name, ""
}

// nthName is the n-th name to try: a.txt, a (1).txt, a (2).txt, …
func nthName(name string, n int) string {
	if n == 0 {
		return name
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" { // .profile is all name
		stem, ext = name, ""
	}
	number := " (" + strconv.FormatInt(int64(n), 10) + ")"
	if room := maxName - len(number) - len(ext); len(stem) > room {
		if room < 1 { // nearly all of it is behind the dot
			stem, ext, room = name, "", maxName-len(number)
		}
		cut := room
		for cut > 1 && room-cut < utf8.UTFMax && !utf8.RuneStart(stem[cut]) {
			cut--
		}
		if !utf8.RuneStart(stem[cut]) { // not a text
			cut = room
		}
		stem = stem[:cut]
	}
	return stem + number + ext
}

func describeUpload(r huma.Registry, o *huma.Operation) {
	files := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Format: "binary"}, Description: "Files to upload; the field may be repeated."}
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{
		Type: huma.TypeObject, Properties: map[string]*huma.Schema{"files": files}}}}}
	o.Responses["200"] = &huma.Response{Description: "Success", Content: rest.JSONContent(r.Schema(reflect.TypeFor[api.Uploaded](), true, ""))}
}
