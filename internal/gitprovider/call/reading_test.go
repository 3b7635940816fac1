package call

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSentence(t *testing.T) {
	for body, want := range map[string]string{
		`{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists."}]}`: "Validation Failed A pull request already exists.",
		`{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}]}`:                            "Validation Failed head invalid.",
		`{"message": "Validation Failed", "errors": ["No commits between main and work"]}`:                                                         "Validation Failed No commits between main and work",
		`{"message": ["Another open merge request already exists"]}`:                                                                               "Another open merge request already exists",
		`{"message": {"base": ["You can't use same project/branch"], "a": ["is short"]}}`:                                                          "is short You can't use same project/branch",
		`{"error": "insufficient_scope", "error_description": "The request requires higher privileges", "scope": "api"}`:                           "insufficient_scope The request requires higher privileges",
		`{"type": "error", "error": {"message": "source branch not found", "detail": "Try another"}}`:                                              "source branch not found Try another",
		`{"errors": [{"context": null, "message": "Only one pull request may be open", "exceptionName": "x.Y"}]}`:                                  "Only one pull request may be open",
		`{"message": "same", "errors": ["same"]}`:                                                                                                  "same",
		`<html>`: "", `"text"`: "text", `7`: "", `{"other": 1}`: "", `null`: "",
	} {
		if got := sentence([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzSentence(f *testing.F) {
	f.Add([]byte(`{"message": {"base": [["x"]]}, "errors": [{"code": "a_b"}]}`), "tok:en")
	f.Add([]byte(`{"message": "tok:en\u0007\u2028"}`), "tok:en")
	f.Fuzz(func(t *testing.T, body []byte, token string) {
		c := &Caller{secrets: spellings(token)}
		text := c.clean(sentence(body))
		if n := utf8.RuneCountInString(text); n > maxDetail+1 {
			t.Errorf("%d characters", n)
		}
		for _, r := range text {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is not for people", text)
			}
		}
		if len(token) > 3 && !strings.ContainsAny(token, " *") && strings.Contains(text, token) && utf8.ValidString(token) {
			t.Errorf("%q has the token %q", text, token)
		}
	})
}

func TestPasted(t *testing.T) {
	for text, want := range map[string]string{
		"https://github.com/a/b": "github.com/a/b", "http://h:3000/a/b.git": "h/a/b.git", " github.com/a/b ": "github.com/a/b", "git@github.com:a/b.git": "github.com/a/b.git",
		"ssh://git@h:2222/a/b.git": "h/a/b.git", "git.example.org:3000/a/b": "git.example.org/a/b", "git://h/a/b": "h/a/b", "https://u:p@h/a/b": "h/a/b",
		"https://h/a/b/tree/main?x=1#y": "h/a/b/tree/main", "git@h:/a/b": "h/a/b",
		"a/b": "", "name": "", "": "", "https://": "", "https://github.com": "", "https://github.com/": "", "file:///etc/passwd": "", "ext::sh -c x": "", "javascript://h/a": "",
		"a:b": "", "v1.2": "", ".github/x": "", "./a/b": "", "../a/b": "",
	} {
		u, ok := Pasted(text)
		got := ""
		if ok {
			got = u.Hostname() + u.Path
		}
		if got != want || ok && u.User != nil {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	c := of(&http.Client{}, "http://git.example.org:3000")
	for text, want := range map[string]bool{"git@git.example.org:a/b": true, "https://GIT.example.org/a/b": true, "https://www.git.example.org/a/b": true, "https://example.org/a/b": false, "https://git.example.org.evil.org/a/b": false} {
		if u, ok := Pasted(text); !ok || c.Here(u) != want {
			t.Errorf("%q: %v %t", text, u, ok)
		}
	}
}

func FuzzPasted(f *testing.F) {
	for _, text := range []string{"https://h/a/b", "git@h:a/b", "h.org/a", "a@b:c@d:e", "ssh://u@h:1/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, ok := Pasted(text)
		if ok && (u.Hostname() == "" || u.User != nil || !slices.Contains([]string{"http", "https", "ssh", "git"}, u.Scheme) || strings.Trim(u.Path, "/") == "") {
			t.Errorf("%q: %v", text, u)
		}
	})
}

func TestPath(t *testing.T) {
	for want, parts := range map[string][]string{
		"/a/b": {"a", "b"}, "/a%2Fb": {"a/b"}, "/%2E%2E/x": {"..", "x"}, "/%2E": {"."}, "/a%3Fb%23c%25": {"a?b#c%"}, "/": {""}, "/.github": {".github"},
	} {
		if got := Path(parts...); got != want {
			t.Errorf("%q: %s, want %s", parts, got, want)
		}
	}
	if got := Segments("/a b/../c/"); got != "/a%20b/%2E%2E/c" {
		t.Error(got)
	}
}

func TestNext(t *testing.T) {
	for link, want := range map[string]int{
		`<https://api.github.com/user/repos?page=2&per_page=3>; rel="next", <https://api.github.com/user/repos?page=9>; rel="last"`: 2,
		`<https://x/?page=1>; rel="prev", <https://x/?page=3>; rel="next"`:                                                          3,
		`<https://x/?page=4>; title="a"; REL=next`:                                                                                  4,
		`<https://x/?page=1>; rel="last"`:                                                                                           0,
		`<https://x/?page=-3>; rel="next"`:                                                                                          0,
		`<https://x/?page=99999999999>; rel="next"`:                                                                                 99999999999,
		`<https://x/>; rel="next"`:                                                                                                  0,
		`nonsense`:                                                                                                                  0,
		``:                                                                                                                          0,
		`<:>; rel="next"`:                                                                                                           0,
	} {
		if got := (Answer{Header: http.Header{"Link": {link}}}).NextPage(); got != want {
			t.Errorf("%s: %d", link, got)
		}
	}
	for value, want := range map[string]int{"2": 2, "": 0, "x": 0, "0": 0} {
		if got := (Answer{Header: http.Header{"X-Next-Page": {value}}}).NextPage(); got != want {
			t.Errorf("X-Next-Page %q: %d", value, got)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add(`<https://x/?page=3>; rel="next"`)
	f.Fuzz(func(t *testing.T, link string) {
		a := Answer{Header: http.Header{"Link": {link}}}
		if page := a.NextPage(); page < 0 || page == 1 || page > 1 && a.Next() == nil {
			t.Errorf("%q: %d", link, page)
		}
	})
}

func TestEach(t *testing.T) {
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		w.Header().Set("Link", `<https://elsewhere.invalid/other?page=`+strconv.Itoa(page+1)+`>; rel="next"`)
		if page == 3 {
			w.Header().Del("Link")
		}
		_, _ = w.Write([]byte(`["` + r.URL.Path + strconv.Itoa(page) + `"]`))
	})
	for _, test := range []struct {
		most, stop int
		want       string
	}{{9, 9, "/api/x1 /api/x2 /api/x3"}, {2, 9, "/api/x1 /api/x2"}, {9, 1, "/api/x1"}} {
		var got []string
		err := Each(t.Context(), c, Request{Path: "/x", Query: PageQuery(1, 0)}, test.most, func(page []string) bool {
			got = append(got, page...)
			return len(got) < test.stop
		})
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%+v: %q %v", test, got, err)
		}
	}
	if q := PageQuery(0, 500); q.Encode() != (url.Values{"page": {"1"}, "per_page": {"100"}}).Encode() {
		t.Error(q)
	}
}
