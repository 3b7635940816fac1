package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
)

// builtPage is what a build of the page leaves behind.
var builtPage = fstest.MapFS{
	"index.html":              {Data: []byte("<!doctype html>\n<html lang=\"en\">\n  <head>\n    <meta charset=\"utf-8\" /><title>Deckhand</title>\n    <script type=\"module\" src=\"./ui/index-1a2b.js\"></script></head></html>\n")},
	"ui/index-1a2b.js":        {Data: bytes.Repeat([]byte("console.log(1);\n"), 1000)},
	"ui/tiny-1a2b.css":        {Data: []byte("a{}")},
	"other.txt":               {Data: []byte("not for the page")},
	"manual/contents.json":    {Data: []byte(`[{"path":"","title":"Documentation"},{"path":"walk","title":"A walk","part":"Reading","sections":[{"id":"a","title":"First"},{"id":"b","title":"Second"},{"id":"c","title":"Third"}]},{"path":"parts/one","title":"One & only","part":"Reading"},{"path":"parts/inner","title":"Inner","part":"Reading","within":"parts/one"}]`)},
	"manual/index.html":       {Data: []byte("<h1>All</h1>")},
	"manual/walk.html":        {Data: []byte("<p>Step by step</p>")},
	"manual/parts/one.html":   {Data: []byte("<p>The part</p>")},
	"manual/parts/inner.html": {Data: []byte("<p>Within</p>")},
	"manual/pictures/a.svg":   {Data: []byte("<svg/>")},
	"manual/files/ci.yml":     {Data: []byte("jobs:\n")},
	"manual/search.json":      {Data: []byte(`[{"path":"walk"}]`)},
}

var pagePaths = []string{"/", "/login", "/settings", "/settings/keys", "/conversations/c1", "/conversations/c1/files"}

var nonceForm = regexp.MustCompile(`<meta name="csp-nonce" content="([A-Z2-7]{26})" />`)

// All addresses of the page are the same document, for all visitors, and never the same twice.
func TestUIDocument(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Forwarding.Domain = "ports.example.org" }})
	seen := map[string]bool{}
	for _, path := range pagePaths {
		a := r.browse("GET", path).want(t, 200, `<meta charset="utf-8" />`, "<base href=")
		policy := a.header.Get("Content-Security-Policy")
		m := nonceForm.FindStringSubmatch(a.body)
		if m == nil || seen[m[1]] || !strings.Contains(policy, "style-src 'self' 'nonce-"+m[1]+"';") {
			t.Fatalf("%s: nonce %q, %s", path, m, policy)
		}
		seen[m[1]] = true
		for _, part := range []string{"default-src 'none';", "script-src 'self';", "connect-src 'self';", "img-src 'self' data: blob:;", "media-src 'self' blob:;", "frame-src 'self' http://*.ports.example.org:*;",
			"base-uri 'self';", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: %q is missing in %s", path, part, policy)
			}
		}
		if h := a.header; h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %v", path, h)
		}
		if strings.Index(a.body, "<base") > strings.Index(a.body, "<script") {
			t.Errorf("%s: the base comes after what needs it", path)
		}
	}
	r.browse("GET", "/settings/keys/more").want(t, 401)
	r.browse("GET", "/index.html").want(t, 401)
	if a := r.browse("HEAD", "/settings"); a.status != 200 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
}

// What the document says of who asks spares the page a request that would fail.
func TestUIVisitor(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for _, c := range []struct{ path, site, cookie, want string }{
		{"/", "none", "", page.VisitorStranger},
		{"/", "same-origin", "", page.VisitorStranger},
		{"/", "none", "deckhand_session=wrong", page.VisitorStranger},
		{"/", "none", r.cookie("ada"), page.VisitorUnknown},
		{"/settings", "same-origin", r.cookie("bob"), page.VisitorNew},
		{"/", "cross-site", "", page.VisitorUnknown}, // the browser keeps the cookie back
		{"/", "same-site", r.cookie("ada"), page.VisitorUnknown},
		{"/", "", "", page.VisitorUnknown}, // an older browser, or one that is not sure of us
	} {
		r.browse("GET", c.path, "Sec-Fetch-Site", c.site, "Cookie", c.cookie).want(t, 200, `<meta name="deckhand-visitor" content="`+c.want+`" />`)
	}
	for site, want := range map[string]string{"cross-site": page.VisitorAstray, "same-site": page.VisitorAstray, "same-origin": page.VisitorStranger, "none": page.VisitorStranger, "": page.VisitorStranger} {
		r.browse("GET", "/docs", "Sec-Fetch-Site", site).want(t, 401, `content="`+want+`"`, `<base href="./"`)
	}
	r.do("GET", "/docs", "", "X-Session-API-Key", "").want(t, 401, `"detail"`) // a program is no visitor
}

// Who opens an address that is not there sees the page, which says so; programs get JSON.
func TestUIMissing(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for path, base := range map[string]string{"/nope": "./", "/nope/deeper": "../", "/api/nope": "../"} {
		r.browse("GET", path, "Cookie", r.cookie("ada")).want(t, 404, `<base href="`+base+`"`, `content="`+page.VisitorUnknown+`"`)
		r.browse("GET", path, "Sec-Fetch-Site", "none").want(t, 401, `content="`+page.VisitorStranger+`"`)
		r.do("GET", path, "").want(t, 404, `"error"`)
		r.do("GET", path, "", "X-Session-API-Key", "").want(t, 401, `"detail"`)
	}
	r.browse("GET", "/api/login", "Cookie", r.cookie("ada")).want(t, 405, `"error"`)
	r.browse("GET", "/nope//twice", "Cookie", r.cookie("ada")).want(t, 404, `"error"`)
	for _, path := range []string{"/%5Cevil.test", "/%09/evil.test", "/%0A/evil.test", "/%20/evil.test", "/a/%5c%5Cevil.test"} { // where a login would lead on to
		r.browse("GET", path, "Sec-Fetch-Site", "none").want(t, 401, `"detail"`)
	}
}

func TestUIFiles(t *testing.T) {
	r := newRig(t)
	const js, css = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
	for _, c := range []struct {
		name, accept, kind, coding string
	}{
		{"index-1a2b.js", "gzip, br", js, "gzip"},
		{"index-1a2b.js", "br", js, ""},
		{"index-1a2b.js", "gzip;q=0", js, ""},
		{"tiny-1a2b.css", "gzip", css, ""}, // packed it would be larger
	} {
		a := r.browse("GET", "/ui/"+c.name, "Accept-Encoding", c.accept)
		h, text := a.header, []byte(a.body)
		if a.status != 200 || h.Get("Content-Type") != c.kind || h.Get("Content-Encoding") != c.coding || h.Get("Cache-Control") != rest.Immutable || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%+v: %d %v", c, a.status, h)
		}
		if c.coding != "" {
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(text, builtPage["ui/"+c.name].Data) {
			t.Errorf("%+v: %.40q", c, text)
		}
	}
	for _, name := range []string{"nothing.js", "%2e%2e%2findex.html", "..%2fother.txt", "index-1a2b.js%00"} {
		if a := r.do("GET", "/ui/"+name, ""); a.status != 404 || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
	}
}

// A program that was built without the page says how to build it, and lets people log in.
func TestUIUnbuilt(t *testing.T) {
	for name, built := range map[string]fstest.MapFS{"nothing": nil, "an empty folder": {".keep": {}}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tune{config: func(c *Config) {
				if c.Page.Built = nil; built != nil {
					c.Page.Built = built
				}
			}})
			r.browse("GET", "/").want(t, 503, "make build", `href="./docs"`)
			r.browse("GET", "/conversations/c1").want(t, 503, "make build", `href="../docs"`)
			r.browse("GET", "/login").want(t, 200, `<form id="form">`)
			r.browse("GET", "/docs").want(t, 401, `<form id="form">`)
			for site, astray := range map[string]bool{"cross-site": true, "same-site": true, "same-origin": false, "none": false, "": false} {
				if a := r.browse("GET", "/docs", "Sec-Fetch-Site", site).want(t, 401); strings.Contains(a.body, "data-astray") != astray {
					t.Errorf("Sec-Fetch-Site %q: %s", site, a.body)
				}
			}
			r.do("GET", "/ui/index-1a2b.js", "").want(t, 404)
		})
	}
}

// The manual is for who is logged in, as the API's description is.
func TestManual(t *testing.T) {
	r := newRig(t)
	for path, parts := range map[string][]string{
		"/manual/":               {"<title>Documentation · Deckhand</title>", `<a href="../manual/" aria-current="page">`, "<h1>All</h1>", `href="../assets/deckhand/style.css"`},
		"/manual/walk":           {"<title>A walk · Deckhand</title>", "<p>Step by step</p>", `<h2>Reading</h2>`, `<a href="../manual/parts/one">One &amp; only</a>`, `<a href="#b">Second</a>`, `<a rel="prev" href="../manual/">`, `<a rel="next" href="../manual/parts/one">`},
		"/manual/parts/one":      {"<p>The part</p>", `<a href="../../manual/walk">`, `href="../../assets/deckhand/style.css"`},
		"/manual/pictures/a.svg": {"<svg/>"},
		"/manual/files/ci.yml":   {"jobs:"},
		"/manual/search.json":    {`[{"path":"walk"}]`},
	} {
		r.do("GET", path, "").want(t, 200, parts...)
		r.browse("GET", path).want(t, 401, `content="stranger"`)
	}
	inner := r.do("GET", "/manual/parts/inner", "").want(t, 200, "<p>Within</p>", `<a href="../../manual/parts/one" aria-current="page">`, `<a rel="prev" href="../../manual/parts/one">`)
	if strings.Contains(inner.body, `href="../../manual/parts/inner"`) {
		t.Errorf("a page that is within another one has a menu entry: %s", inner.body)
	}
	for _, path := range []string{"/manual/nothing", "/manual/parts/two", "/manual/contents.json", "/manual/index", "/manual/pictures/b.svg", "/manual/pictures/..%2fcontents.json", "/manual/..%2f..%2fother.txt"} {
		r.do("GET", path, "").want(t, 404)
	}
	without := newRig(t, tune{config: func(c *Config) { c.Page.Built = nil }})
	without.do("GET", "/manual/", "").want(t, 404, "make build")
}

// A manual that the build has compressed is served the same: its pages in their frame, its files compressed where
// the browser can read that.
func TestManualPacked(t *testing.T) {
	stored := fstest.MapFS{}
	for name, file := range builtPage {
		if strings.HasPrefix(name, "manual/") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(file.Data)
			_ = z.Close()
			name, file = name+".gz", &fstest.MapFile{Data: b.Bytes()}
		}
		stored[name] = file
	}
	r := newRig(t, tune{config: func(c *Config) { c.Page.Built = stored }})
	r.do("GET", "/manual/walk", "").want(t, 200, "<p>Step by step</p>", `<a href="../manual/parts/one">One &amp; only</a>`)
	const want = `[{"path":"walk"}]`
	r.do("GET", "/manual/search.json", "", "Accept-Encoding", "identity").want(t, 200, want)
	a := r.do("GET", "/manual/search.json", "", "Accept-Encoding", "gzip").want(t, 200)
	z, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != want || a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%q, %v, %v", text, err, a.header)
	}
	r.do("GET", "/manual/search.json.gz", "").want(t, 404)
	r.do("GET", "/manual/contents.json.gz", "").want(t, 404)
}
