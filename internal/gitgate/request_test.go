package gitgate_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/gitgate"
)

const (
	oid    = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
	fetch  = "service=git-upload-pack"
	push   = "service=git-receive-pack"
	app    = "/https/git.example/octo/app.git"
	reads  = false
	writes = true
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		method, path, query string
		kind                gitgate.Kind
		repository          string
		write               bool
	}{
		{"GET", app + "/info/refs", fetch, gitgate.Refs, "octo/app", reads},
		{"GET", app + "/info/refs", push, gitgate.Refs, "octo/app", writes},
		{"POST", app + "/git-upload-pack", "", gitgate.Fetch, "octo/app", reads},
		{"POST", app + "/git-receive-pack", "", gitgate.Push, "octo/app", writes},
		{"GET", "/https/git.example/octo/app/info/refs", fetch, gitgate.Refs, "octo/app", reads},
		{"GET", "/http/127.0.0.1:3000/octo/app.git/info/refs", fetch, gitgate.Refs, "octo/app", reads},
		{"GET", "/http/[::1]:3000/octo/app.git/info/refs", fetch, gitgate.Refs, "octo/app", reads},
		{"GET", "/https/git.example/a/b/c-d/e_f.g.git/info/refs", fetch, gitgate.Refs, "a/b/c-d/e_f.g", reads},
		{"GET", "/https/git.example/scm/~ada/app.git/info/refs", fetch, gitgate.Refs, "scm/~ada/app", reads},
		{"POST", app + "/info/lfs/objects/batch", "", gitgate.Batch, "octo/app", reads},
		{"GET", app + "/info/lfs/objects/" + oid, "", gitgate.Object, "octo/app", reads},
		{"PUT", app + "/info/lfs/objects/" + oid + "/12", "", gitgate.Object, "octo/app", writes},
		{"PUT", app + "/gitlab-lfs/objects/" + oid + "/12", "", gitgate.Object, "octo/app", writes},
		{"POST", app + "/info/lfs/verify", "", gitgate.Confirm, "octo/app", writes},
		{"GET", app + "/info/lfs/locks", "limit=3&path=a%2Fb", gitgate.Locks, "octo/app", reads},
		{"POST", app + "/info/lfs/locks", "", gitgate.Locks, "octo/app", writes},
		{"POST", app + "/info/lfs/locks/verify", "", gitgate.Locks, "octo/app", writes},
		{"POST", app + "/info/lfs/locks/7/unlock", "", gitgate.Locks, "octo/app", writes},
	} {
		r, err := gitgate.Parse(c.method, c.path, c.query)
		if err != nil || r.Kind != c.kind || r.Repository != c.repository || r.Write != c.write || r.Query != c.query {
			t.Errorf("%s %s?%s: %+v, %v", c.method, c.path, c.query, r, err)
		}
	}
}

// Everything that is not git, or is git in a spelling that another reader
// might make something else, is refused.
func TestParseRefuses(t *testing.T) {
	for _, c := range [][3]string{
		{"GET", "", fetch}, {"GET", "/", fetch}, {"GET", "/https", fetch}, {"GET", "/https/git.example", fetch},
		{"GET", "/https/git.example/info/refs", fetch},
		{"GET", "/https/git.example/app.git/info/refs", fetch}, // no owner
		{"GET", "/ftp/git.example/octo/app.git/info/refs", fetch},
		{"GET", "/HTTPS/git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https/Git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https/git.example:443/octo/app.git/info/refs", fetch}, // it has a shorter spelling
		{"GET", "/https/ada@git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https/ada:pw@git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https/" + gitgate.Name + "/https/git.example/octo/app.git/info/refs", fetch},
		{"GET", "//https/git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https//git.example/octo/app.git/info/refs", fetch},
		{"GET", "/https/git.example//octo/app.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/../evil/app.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/./app.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/%2e%2e/app.git/info/refs", fetch},
		{"GET", "/https/git.example/octo%2fapp.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/app.git%2finfo/refs", fetch},
		{"GET", "/https/git.example%2fx/octo/app.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/app.git/info/refs/", fetch},
		{"GET", "/https/git.example/octo/app.git;x/info/refs", fetch},
		{"GET", `/https/git.example/octo\app/x.git/info/refs`, fetch},
		{"GET", "/https/git.example/octo/a pp.git/info/refs", fetch},
		{"GET", "/https/git.example/octo/app\r\nX: y/info/refs", fetch},
		{"GET", "/https/git.example/octo/app.git/x/y/info/refs", fetch},
		{"GET", "/https/git.example/octo/app/-/x/info/refs", fetch},
		{"GET", app + "/info/refs", ""}, {"GET", app + "/info/refs", "service=git-upload-archive"},
		{"GET", app + "/info/refs", fetch + "&" + push}, {"GET", app + "/info/refs", push + "&private_token=x"},
		{"POST", app + "/info/refs", fetch}, {"HEAD", app + "/info/refs", fetch}, {"get", app + "/info/refs", fetch},
		{"GET", app + "/HEAD", ""}, {"GET", app + "/objects/info/packs", ""}, {"GET", app, ""}, {"GET", "/https/git.example/octo/app/settings", ""},
		{"GET", app + "/git-upload-pack", ""}, {"POST", app + "/git-receive-pack", "x=y"}, {"POST", app + "/git-upload-archive", ""},
		{"DELETE", app + "/git-receive-pack", ""}, {"PUT", app + "/git-upload-pack", ""},
		{"POST", "/https/git.example/api/v1/repos/octo/other/contents/git-upload-pack", ""},
		{"POST", "/https/git.example/API/v4/projects/1/repository/files/git-upload-pack", ""},
		{"POST", "/https/git.example/rest/api/1.0/git-upload-pack", ""},
		{"PUT", "/https/git.example/api/v1/repos/a/b/contents/info/lfs/objects/" + oid, ""},
		{"POST", app + "/info/lfs", ""}, {"POST", app + "/info/lfs/objects", ""}, {"GET", app + "/info/lfs/objects/batch", ""},
		{"POST", app + "/info/lfs/objects/batch", "x=y"}, {"GET", app + "/info/lfs/objects/" + oid[1:], ""},
		{"GET", app + "/info/lfs/objects/" + strings.ToUpper(oid), ""}, {"PUT", app + "/info/lfs/objects/" + oid + "/x", ""},
		{"PUT", app + "/info/lfs/objects/" + oid + "/1/authorize", ""}, {"DELETE", app + "/info/lfs/objects/" + oid, ""},
		{"GET", app + "/info/lfs/locks", "private_token=x"}, {"GET", app + "/info/lfs/locks", "limit=1&limit=2"},
		{"POST", app + "/info/lfs/locks/a/b/unlock", ""}, {"POST", app + "/info/lfs/locks/unlock", ""},
		{"GET", "/https/git.example/" + strings.Repeat("a/", 600) + "app.git/info/refs", fetch},
	} {
		if r, err := gitgate.Parse(c[0], c[1], c[2]); err == nil {
			t.Errorf("%s %.100q?%s was taken for %+v", c[0], c[1], c[2], r)
		}
	}
}

// Whatever passes is read by all parsers in the same way, and leads to the site
// that was checked.
func FuzzParse(f *testing.F) {
	f.Add("GET", app+"/info/refs", fetch)
	f.Add("POST", app+"/git-receive-pack", "")
	f.Add("PUT", app+"/gitlab-lfs/objects/"+oid+"/12", "")
	f.Add("GET", app+"/info/lfs/locks", "path=%2e")
	f.Add("GET", "/http/[::1]:3000/a/../b/info/refs", fetch)
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r, err := gitgate.Parse(method, path, query)
		if err != nil {
			return
		}
		if !slices.Contains([]string{"GET", "POST", "PUT"}, method) {
			t.Errorf("method %q", method)
		}
		if strings.ContainsAny(path, "%\\;?#\r\n\x00 ") || strings.Contains(path, "//") || strings.Contains(path, "/../") {
			t.Errorf("%q passed", path)
		}
		sent := r.URL()
		back, err := url.Parse(sent.String())
		if err != nil || back.Host != r.Site.Host || back.Scheme != r.Site.Scheme || back.Path != r.Path || back.RawQuery != query || back.User != nil {
			t.Errorf("%q leads to %q: %v", path, sent, err)
		}
		if at, ok := gitgate.Origin(&url.URL{Scheme: r.Site.Scheme, Host: r.Site.Host}); !ok || at != r.Site {
			t.Errorf("%+v has another spelling, %+v", r.Site, at)
		}
		if "/"+r.Site.Scheme+"/"+r.Site.Host+r.Path != path || !strings.HasPrefix(r.Path, "/"+r.Repository) {
			t.Errorf("%q became %+v", path, r)
		}
		if first, _, _ := strings.Cut(strings.ToLower(r.Repository), "/"); first == "api" || !strings.Contains(r.Repository, "/") {
			t.Errorf("%q is no repository", r.Repository)
		}
		if method == http.MethodPut && !r.Write {
			t.Errorf("%q writes", path)
		}
	})
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://GitHub.com": "https://github.com", "https://github.com:443/": "https://github.com", "http://git.local:80": "http://git.local",
		"https://git.local:80": "https://git.local:80", "http://127.0.0.1:3000": "http://127.0.0.1:3000", "https://[::1]:443": "https://[::1]",
		"http://[::1]:3000": "http://[::1]:3000",
		"https://a@b.c":     "", "https://b.c/gitlab": "", "ssh://b.c": "", "https://" + gitgate.Name: "", "https://": "", "http://" + gitgate.Name + ":8080": "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := gitgate.Origin(u)
		if ok != (want != "") || ok && s.String() != want {
			t.Errorf("%s: %v %v, want %q", address, s, ok, want)
		}
	}
}
