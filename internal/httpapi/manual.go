package httpapi

import (
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"

	"deckhand/api"
)

// manualFolder is where the build puts the documentation.
const manualFolder = "manual"

// chapter is a page of the manual.
type chapter struct {
	Path  string `json:"path"`
	Title string `json:"title"`
}

// serveManual gives the documentation to read, as it was when the program was built.
func serveManual(d *Door, w http.ResponseWriter, r *http.Request, _ *call) error {
	name := path.Join(r.PathValue("folder"), r.PathValue("page"))
	all, err := d.chapters()
	if err != nil {
		return err
	}
	if path.Dir(name) == "pictures" {
		return d.servePicture(w, path.Base(name))
	}
	for _, c := range all {
		if c.Path != name {
			continue
		}
		file := name
		if file == "" {
			file = "index"
		}
		text, err := fs.ReadFile(d.Page, path.Join(manualFolder, file+".html"))
		if err != nil {
			return err
		}
		return writePage(w, http.StatusOK, render("manual.html", map[string]any{
			"Root": rootOf(r), "Version": d.Version, "Title": c.Title, "Path": c.Path, "Chapters": all,
			"Text": template.HTML(text), // made from our own texts when the page was built
		}))
	}
	return fail(http.StatusNotFound, api.CodeNotFound, "The manual has no such page; it begins at /manual/.")
}

// chapters are the pages that there are, in the order to read them.
func (d *Door) chapters() ([]chapter, error) {
	if d.Page == nil {
		return nil, noManual()
	}
	text, err := fs.ReadFile(d.Page, path.Join(manualFolder, "contents.json"))
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
	return fail(http.StatusNotFound, api.CodeNotFound, "This program was built without its manual; make build makes both, with Node.js 20 or newer.")
}

func (d *Door) servePicture(w http.ResponseWriter, name string) error {
	text, err := fs.ReadFile(d.Page, path.Join(manualFolder, "pictures", name))
	if err != nil {
		return fail(http.StatusNotFound, api.CodeNotFound, "There is no such picture.")
	}
	w.Header().Set("Content-Type", contentType(name))
	_, err = w.Write(text)
	return err
}
