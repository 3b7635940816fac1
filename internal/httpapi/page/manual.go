package page

import (
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

// manualFolder is where the build puts the documentation.
const manualFolder = "manual"

// chapter is a page of the manual, below a part of it.
type chapter struct {
	Path     string `json:"path"`
	Title    string `json:"title"`
	Part     string `json:"part"`
	Within   string `json:"within"` // the menu entry that stands for this page, if it has none itself
	Sections []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	} `json:"sections"`
}

// manualPart is what belongs together.
type manualPart struct {
	Name     string
	Chapters []chapter
}

// searchFile is what the manual's search looks through.
const searchFile = "search.json"

// serveManual gives the documentation to read, as it was when the program was built.
func (d *Handlers) serveManual(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	name := path.Join(r.PathValue("folder"), r.PathValue("page"))
	all, err := d.chapters()
	if err != nil {
		return err
	}
	if dir := path.Dir(name); dir == "pictures" || dir == "files" || name == searchFile {
		return d.serveManualFile(w, r, name)
	}
	at := slices.IndexFunc(all, func(c chapter) bool { return c.Path == name })
	if at < 0 {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Page not found. The manual starts at /manual/.")
	}
	file := name
	if file == "" {
		file = "index"
	}
	text, err := readBuilt(d.Built, path.Join(manualFolder, file+".html"))
	if err != nil {
		return err
	}
	entry := name
	if all[at].Within != "" {
		entry = all[at].Within
	}
	page := map[string]any{
		"Root": rest.RootOf(r), "Version": d.Version, "Title": all[at].Title, "Path": entry, "Parts": inParts(all), "Sections": all[at].Sections,
		"Text": template.HTML(text), // made from our own texts when the page was built
	}
	if at > 0 {
		page["Before"] = all[at-1]
	}
	if at < len(all)-1 {
		page["After"] = all[at+1]
	}
	return writePage(w, http.StatusOK, render("manual.html", page))
}

// inParts groups the chapters that have a menu entry, in their order.
func inParts(all []chapter) []manualPart {
	var out []manualPart
	for _, c := range all {
		if c.Within != "" {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Name != c.Part {
			out = append(out, manualPart{Name: c.Part})
		}
		last := &out[len(out)-1]
		last.Chapters = append(last.Chapters, c)
	}
	return out
}

// chapters are the pages that there are, in the order to read them.
func (d *Handlers) chapters() ([]chapter, error) {
	if d.Built == nil {
		return nil, noManual()
	}
	text, err := readBuilt(d.Built, path.Join(manualFolder, "contents.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noManual()
	}
	var all []chapter
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

func noManual() error {
	return rest.Fail(http.StatusNotFound, api.CodeNotFound, "This program was built without the manual. Install Node.js 20 or newer and run make build.")
}

// serveManualFile serves a file that the pages load, compressed if the browser accepts it.
func (d *Handlers) serveManualFile(w http.ResponseWriter, r *http.Request, name string) error {
	h, file := w.Header(), path.Join(manualFolder, name)
	h.Add("Vary", "Accept-Encoding")
	if rest.Accepts(r, "gzip") {
		if text, err := fs.ReadFile(d.Built, file+storedPacked); err == nil {
			h.Set("Content-Type", rest.ContentType(name))
			h.Set("Content-Encoding", "gzip")
			_, err = w.Write(text)
			return err
		}
	}
	text, err := readBuilt(d.Built, file)
	if err != nil {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "File not found in the manual.")
	}
	h.Set("Content-Type", rest.ContentType(name))
	_, err = w.Write(text)
	return err
}
