package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLegacyOperations calls every operation that the older server documents, with
// good input and with everything that its description forbids.
func TestLegacyOperations(t *testing.T) {
	y := newYard(t)
	doc := document(t)
	ops := legacyOperations(t)
	for _, op := range ops {
		t.Run(op.name(), func(t *testing.T) {
			mine, h, r := *y, *y.sandboxRig, *y.sandboxRig.rig
			r.t, h.rig, mine.sandboxRig = t, &r, &h
			mine.settled()
			c := checker{t: t, op: op, judge: judge{at(t, doc, "components", "schemas").(map[string]any)},
				documented: at(t, doc, "paths", op.Path, strings.ToLower(op.Method), "responses").(map[string]any)}
			good := mine.good(op)
			before, accepted := mine.everything(), 0
			wishes := mistakes(op, good, mine.foreign)
			for _, w := range wishes {
				if a := mine.make(op, w); a.status < 300 {
					if accepted++; w.must != 0 && !listed(lenient, op.name()+" "+w.name) {
						t.Errorf("%s: accepted: %d %.300s", w.name, a.status, a.body)
					}
					c.succeeded(w, a)
				} else {
					c.refused(w, a)
				}
			}
			if accepted == 0 && mine.everything() != before {
				t.Error("requests that were refused left something behind")
			}
			if op.Method != http.MethodGet && len(wishes) < 3 {
				t.Errorf("only %d mistakes were thought of", len(wishes))
			}
			good = mine.good(op)
			a := mine.make(op, good)
			if a.status != good.must {
				t.Fatalf("%d %.500s", a.status, a.body)
			}
			c.succeeded(good, a)
		})
	}
	for name := range legacyCalls {
		if !slices.ContainsFunc(ops, func(op legacyOperation) bool { return op.name() == name }) {
			t.Errorf("%s is called, but not documented", name)
		}
	}
	if len(ops) != 43 {
		t.Errorf("%d operations", len(ops))
	}
}

// checker holds answers against the older server's description and against ours.
type checker struct {
	t          *testing.T
	op         legacyOperation
	judge      judge
	documented map[string]any // our responses, by status
}

// differs are fields that are not as the older server's document has them, and why.
var differs = map[string]string{
	"POST /api/conversations/{conversation_id}/upload-files .skipped_files.": "its own front end reads a name and a reason of each",
	"GET /api/settings .secrets_store.provider_tokens.":                      "it never showed any; ours are masked, in the form in which they can be sent back",
}

// lenient are mistakes, by its document, that we accept, and why.
var lenient = map[string]string{
	"POST /api/add-git-providers mcp_config.":   "neither server uses it",
	"POST /api/settings secrets_store is <nil>": "null resets, for every field",
}

// listed reports whether one of the keys is what the text begins with.
func listed(list map[string]string, text string) bool {
	for begin := range list {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

func (c checker) succeeded(w wish, a answer) {
	c.t.Helper()
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		if a.header.Get("Content-Type") != "application/zip" {
			c.t.Errorf("%s: the answer is %s", w.name, a.header.Get("Content-Type"))
		}
		return
	}
	v := a.value(c.t)
	if !c.judge.valid(c.ours(a.status), v) {
		c.t.Errorf("%s: the answer is not what our document says: %.500s", w.name, a.body)
	}
	theirs := c.op.Answers[strconv.FormatInt(int64(a.status), 10)]
	if theirs == nil { // it documents 200 for every success
		theirs = c.op.Answers["200"]
	}
	for _, fault := range theirs.lacks(v, "") {
		if !listed(differs, c.op.name()+" "+fault) {
			c.t.Errorf("%s: %s: %.500s", w.name, fault, a.body)
		}
	}
}

// refused looks at an error: it is ours, in a shape that is documented, and never our fault.
func (c checker) refused(w wish, a answer) {
	c.t.Helper()
	if a.status >= 500 || w.must != 0 && a.status != w.must {
		c.t.Errorf("%s: %d %.300s", w.name, a.status, a.body)
		return
	}
	if w.method != c.op.Method { // not this operation's answer
		return
	}
	v := a.value(c.t)
	if !c.judge.valid(c.ours(a.status), v) {
		c.t.Errorf("%s: the error is not what our document says: %d %.300s", w.name, a.status, a.body)
	}
	if theirs := c.op.Answers[strconv.FormatInt(int64(a.status), 10)]; theirs != nil {
		for _, fault := range theirs.lacks(v, "") {
			c.t.Errorf("%s: %d: %s: %.300s", w.name, a.status, fault, a.body)
		}
	}
	if a.status == http.StatusUnprocessableEntity && len(v.(map[string]any)["detail"].([]any)) == 0 {
		c.t.Errorf("%s: it does not say what is wrong", w.name)
	}
}

// ours is the schema that our document has for a status.
func (c checker) ours(status int) map[string]any {
	c.t.Helper()
	response := c.documented[strconv.FormatInt(int64(status), 10)]
	if response == nil {
		response = c.documented["default"]
	}
	return at(c.t, response, "content", "application/json", "schema").(map[string]any)
}

// lacks says where a value is not what the description promises. A field that may be
// left out, by its schema, was never left out by the older server.
func (f *layout) lacks(v any, where string) []string {
	kind, null := f.kind()
	fault := func(what string) []string { return []string{where + ": " + what} }
	if v == nil {
		if !null {
			return fault("null")
		}
		return nil
	}
	switch kind {
	case "any":
		return nil
	case "map":
		m, ok := v.(map[string]any)
		if !ok {
			return fault("no object")
		}
		var out []string
		for name, x := range m {
			out = append(out, f.Each.lacks(x, where+"."+name)...)
		}
		return out
	case "list":
		list, ok := v.([]any)
		if !ok {
			return fault("no list")
		}
		var out []string
		for i, x := range list {
			out = append(out, f.Each.lacks(x, fmt.Sprint(where, ".", i))...)
		}
		return out
	case "object":
		return f.lacksFields(v, where)
	}
	if !isType(kind, v) {
		return fault("no " + kind)
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, fmt.Sprint(v)) {
		return fault(fmt.Sprint(v, " is not one of ", f.Enum))
	}
	return nil
}

func (f *layout) lacksFields(v any, where string) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return []string{where + ": no object"}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		x, there := m[name]
		if !there {
			out = append(out, where+"."+name+": missing")
			continue
		}
		out = append(out, f.Fields[name].lacks(x, where+"."+name)...)
	}
	return out
}

// mistakes are what can be wrong with a request, by the operation's description.
func mistakes(op legacyOperation, good wish, foreign string) []wish {
	var out []wish
	add := func(name string, must int, change func(*wish)) {
		w := good
		w.name, w.must, w.path, w.query = name, must, maps.Clone(good.path), maps.Clone(good.query)
		change(&w)
		out = append(out, w)
	}
	if op.Path != "/alive" && op.Path != "/health" {
		add("no key", http.StatusUnauthorized, func(w *wish) { w.stranger, w.header = true, nil })
		add("a wrong key", http.StatusUnauthorized, func(w *wish) { w.stranger, w.header = true, []string{"X-Session-API-Key", wrongKey} })
	}
	add("a wrong method", http.StatusMethodNotAllowed, func(w *wish) { w.method = "BREW" })
	for _, p := range op.Params {
		switch {
		case p.In == "path" && p.Name == "conversation_id":
			add("another user's conversation", http.StatusNotFound, func(w *wish) { w.path[p.Name] = foreign })
			add("no conversation", http.StatusNotFound, func(w *wish) { w.path[p.Name] = "none" })
			for _, bad := range []string{strings.Repeat("x", 101), "a\x00b", "a\x01b", "a b", "ä", "a\\b"} {
				add(fmt.Sprintf("the id %.12q", bad), http.StatusUnprocessableEntity, func(w *wish) { w.path[p.Name] = bad })
			}
		case p.In == "path":
			for _, bad := range []string{strings.Repeat("x", 3000), "a\x00b", "-", " "} {
				add(fmt.Sprintf("%s %.12q", p.Name, bad), 0, func(w *wish) { w.path[p.Name] = bad })
			}
		default:
			for name, change := range queryMistakes(p) {
				must := http.StatusUnprocessableEntity
				if strings.HasPrefix(name, "?") {
					must = 0
				}
				add(p.Name+" "+name, must, func(w *wish) { change(w.query) })
			}
		}
	}
	switch {
	case op.Multipart:
		add("JSON in place of a form", 0, func(w *wish) { w.body, w.header = `{"files":[]}`, nil })
		add("a form that breaks off", 0, func(w *wish) { w.body = w.body[:len(w.body)/2] })
		add("no form", 0, func(w *wish) { w.body = "" })
	case op.Body != nil:
		for _, b := range bodyMistakes(op.Body, cmp.Or(good.body, "{}")) {
			add(b.name, b.must, func(w *wish) { w.body = b.body })
		}
		add("another content type", http.StatusUnsupportedMediaType, func(w *wish) { w.header = []string{"Content-Type", "text/plain"} })
	}
	return out
}

// queryMistakes are changes of a query that make one parameter wrong. Those whose
// name begins with a question mark may be accepted: the description allows them.
func queryMistakes(p legacyParam) map[string]func(url.Values) {
	set := func(v string) func(url.Values) { return func(q url.Values) { q.Set(p.Name, v) } }
	out := map[string]func(url.Values){"twice": func(q url.Values) { q[p.Name] = []string{"1", "2"} }}
	if p.Required {
		out["missing"] = func(q url.Values) { q.Del(p.Name) }
	}
	kind, _ := p.Layout.kind()
	switch {
	case kind == "integer":
		for _, bad := range []string{"x", "1.5", "-1", "99999999999999999999", "1e3", "0x1", "\x00"} {
			out[fmt.Sprintf("%q", bad)] = set(bad)
		}
	case kind == "boolean":
		for _, bad := range []string{"maybe", "2", "\x00"} {
			out[fmt.Sprintf("%q", bad)] = set(bad)
		}
	case len(p.Layout.Enum) > 0:
		out["unknown"] = set("no-such-thing")
	default:
		out["NUL"] = set("a\x00b")
		out["? long"] = set(strings.Repeat("x", 3000))
		out["? empty"] = set("")
		out["? dots"] = set("../../etc/passwd")
	}
	return out
}

type badBody struct {
	name, body string
	must       int
}

// bodyMistakes change a good body in one place at a time.
func bodyMistakes(f *layout, good string) []badBody {
	out := []badBody{{"no JSON", `{`, 422}, {"a list", `[]`, 422}, {"a text", `"x"`, 422}, {"a number", `5`, 422}, {"twice", `{"a":1,"a":2}`, 422}}
	with := func(path []string, v any) string {
		var body map[string]any
		if json.Unmarshal([]byte(good), &body) != nil {
			panic(good)
		}
		in := body
		for _, name := range path[:len(path)-1] {
			next, _ := in[name].(map[string]any)
			if next == nil {
				next = map[string]any{}
			}
			in[name], in = next, next
		}
		if last := path[len(path)-1]; v == absent {
			delete(in, last)
		} else {
			in[last] = v
		}
		b, _ := json.Marshal(body)
		return string(b)
	}
	if f.Closed {
		out = append(out, badBody{"an unknown field", with([]string{"no_such_field"}, 1), 422})
	}
	for _, name := range f.Needs {
		out = append(out, badBody{"without " + name, with([]string{name}, absent), 422})
	}
	return append(out, fieldMistakes(f, nil, with)...)
}

// absent stands for a field that is left out.
var absent = any("\x00absent")

// tooLong is a text that no field takes. It is put in at the end, since encoding it each time takes long.
var tooLong = strings.Repeat("x", 1<<20+1)

// fieldMistakes are wrong values for each field, and for those inside it.
func fieldMistakes(f *layout, path []string, with func(path []string, v any) string) []badBody {
	var out []badBody
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		field, here := f.Fields[name], append(slices.Clone(path), name)
		for _, v := range field.wrong() {
			out = append(out, badBody{fmt.Sprintf("%s is %.20v", strings.Join(here, "."), v), with(here, v), 422})
		}
		if kind, _ := field.kind(); kind == "string" && len(field.Enum) == 0 {
			out = append(out, badBody{strings.Join(here, ".") + " has a NUL", with(here, "a\x00b"), 422},
				badBody{strings.Join(here, ".") + " is large", strings.Replace(with(here, "LARGE"), "LARGE", tooLong, 1), 422})
		}
		out = append(out, fieldMistakes(field, here, with)...)
	}
	return out
}

// wrong are values that a field cannot have.
func (f *layout) wrong() []any {
	kind, null := f.kind()
	var out []any
	if !null {
		out = append(out, nil)
	}
	switch kind {
	case "string":
		out = append(out, 5, true, []any{}, map[string]any{"x": 1})
		if len(f.Enum) > 0 {
			out = append(out, "no-such-thing")
		}
		if f.Most > 0 {
			out = append(out, strings.Repeat("x", f.Most+1))
		}
		if f.Least > 0 {
			out = append(out, "")
		}
	case "integer":
		out = append(out, "x", 1.5, true, []any{}, json.Number("99999999999999999999"))
	case "number":
		out = append(out, "x", true, []any{})
	case "boolean":
		out = append(out, "maybe", 2, []any{})
	case "list":
		out = append(out, "x", 5, map[string]any{})
		if each := f.Each.wrong(); len(each) > 0 {
			out = append(out, []any{each[len(each)-1]})
		}
	case "map", "object":
		out = append(out, "x", 5, []any{})
	}
	return out
}
