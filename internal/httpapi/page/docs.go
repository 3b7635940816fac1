package page

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/httpapi/rest"

	"github.com/danielgtaylor/huma/v2"
)

// What the documentation page shows.
type (
	docRow   struct{ Name, Type, Need, Text string }
	docRoute struct {
		Method, Path, ID, Summary string
		About                     string
		Open                      bool
		Params, Body, Answer      []docRow
	}
	docGroup struct {
		Name, Anchor string
		Operations   []docRoute
	}
	docType struct {
		Name string
		Rows []docRow
	}
)

// reference is the document that the documentation page shows.
type reference struct {
	document *huma.OpenAPI
	registry huma.Registry
}

// RenderDocs makes the document of these routes readable.
func RenderDocs(document *huma.OpenAPI, registry huma.Registry, routes []rest.Route, version string) []byte {
	d := &reference{document, registry}
	var groups []docGroup
	for _, tag := range d.document.Tags {
		g := docGroup{Name: tag.Name, Anchor: strings.ReplaceAll(tag.Name, " ", "-")}
		for i := range routes {
			if routes[i].Tag == tag.Name {
				g.Operations = append(g.Operations, d.docRoute(&routes[i]))
			}
		}
		groups = append(groups, g)
	}
	var types []docType
	all := d.registry.Map()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		types = append(types, docType{name, d.docRows(all[name])})
	}
	return render("docs.html", map[string]any{"Root": "./", "Version": version, "Groups": groups, "Types": types})
}

func (d *reference) docRoute(r *rest.Route) docRoute {
	out := docRoute{Method: r.Method, Path: strings.ReplaceAll(r.Path, "{$}", ""), ID: r.ID, Summary: r.Summary, About: r.About, Open: r.Public}
	o := find(d.document, r.ID)
	for _, p := range o.Parameters {
		out.Params = append(out.Params, docRow{p.Name, d.typeName(p.Schema), p.In, p.Description})
	}
	if o.RequestBody != nil {
		for _, content := range o.RequestBody.Content {
			out.Body = d.docRows(content.Schema)
		}
	}
	if ok := o.Responses[strconv.FormatInt(int64(r.OK()), 10)]; ok != nil && ok.Content["application/json"] != nil {
		out.Answer = d.docRows(ok.Content["application/json"].Schema)
	}
	return out
}

// docRows are the fields of an object, or the one row that says what else it is.
func (d *reference) docRows(s *huma.Schema) []docRow {
	for s != nil && s.Ref != "" {
		s = d.registry.SchemaFromRef(s.Ref)
	}
	if s == nil {
		return nil
	}
	if len(s.Properties) == 0 {
		return []docRow{{Type: d.typeName(s), Text: s.Description}}
	}
	var out []docRow
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		need := ""
		if slices.Contains(s.Required, name) {
			need = "required"
		}
		out = append(out, docRow{name, d.typeName(s.Properties[name]), need, s.Properties[name].Description})
	}
	return out
}

// typeName says a schema in a few words.
func (d *reference) typeName(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return path.Base(s.Ref)
	case len(s.AnyOf) > 0:
		var parts []string
		for _, a := range s.AnyOf {
			parts = append(parts, d.typeName(a))
		}
		return strings.Join(parts, " | ")
	}
	name := s.Type
	if s.Type == huma.TypeArray {
		name = "list of " + d.typeName(s.Items)
	}
	if len(s.Enum) > 0 {
		name += ": " + rest.Choices(s.Enum)
	}
	if s.Nullable {
		name += " | null"
	}
	return name
}

func find(doc *huma.OpenAPI, id string) *huma.Operation {
	for _, item := range doc.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete, item.Put} {
			if o != nil && o.OperationID == id {
				return o
			}
		}
	}
	return &huma.Operation{}
}
