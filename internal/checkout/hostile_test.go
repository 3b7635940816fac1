package checkout_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/internal/checkout"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// owned is left by what a hostile repository wants to have run.
const owned = `ls -d /tmp/owned /workspace/owned /workspace/*/owned 2>/dev/null`

// Repositories that are meant to do harm, or are broken, are refused in plain
// words and leave nothing, or do no harm.
func testHostileRepositories(t *testing.T, one *rig) {
	f := one.forge
	module := func(name, url, more string) {
		f.repository(name, map[string]string{"README.md": "Hello\n", ".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = " + url + "\n" + more})
		work := t.TempDir()
		f.git("", "clone", "-q", f.path(name), work)
		f.git("", "-C", work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",lib")
		f.git("", "-C", work, "commit", "-q", "-m", "A submodule")
		f.git("", "-C", work, "push", "-q", "origin", "HEAD:main")
	}
	const harm = "touch${IFS}/workspace/owned"
	module("ext", "ext::sh -c "+harm, "")
	module("file", "file:///etc/.git", "")
	module("option", "--upload-pack=touch /workspace/owned", "")
	module("update", "../good.git", "\tupdate = !touch /workspace/owned\n")
	module("scp", "-oProxyCommand="+harm+":x", "")
	f.repository("good", map[string]string{"README.md": "Hello\n"})
	f.repository("links", map[string]string{"etc@": "/etc", "up@": "../../..", "README.md@": "/etc/passwd", ".openhands@": "/etc"})
	f.repository("filters", map[string]string{".gitattributes": "* filter=evil\n*.bin filter=lfs diff=lfs merge=lfs -text\n",
		"a.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 99999999999999\n", ".gitconfig": "[filter \"evil\"]\n\tsmudge = touch /workspace/owned\n"})
	many := map[string]string{}
	for i := range 3000 {
		many[fmt.Sprintf("d%d/f%d", i%50, i)] = "x"
	}
	f.repository("many", many)
	f.raw("dotgit", ".git/", "README.md")
	f.raw("dotGIT", ".GIT/", "README.md")
	f.raw("short", "git~1/", "README.md")
	f.raw("hfs", ".g\u200cit/", "README.md")
	f.raw("up", "../owned")
	f.raw("backslash", `..\owned`)
	f.raw("dots", "..")
	f.raw("slash", "/owned")
	for name, c := range map[string]struct {
		// fails is what the reason says, note what is told of a clone that works.
		fails, note string
	}{
		"ext": {"", "submodule lib"}, "file": {"", "submodule lib"}, "option": {"", "submodule lib"}, "scp": {"", "submodule lib"},
		"update": {"", "submodule lib"}, "links": {"", ""}, "filters": {"", "LFS"}, "many": {"", ""},
		"dotgit": {"not allowed", ""}, "dotGIT": {"not allowed", ""}, "short": {"not allowed", ""}, "hfs": {"not allowed", ""},
		"up": {"not allowed", ""}, "dots": {"not allowed", ""}, "slash": {"not allowed", ""}, "backslash": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := one.again(t, session.Created{Repository: "octo/" + name})
			err := r.prepare()
			if got := r.sh(owned); got != "" {
				t.Errorf("it did harm: %s", got)
			}
			if c.fails != "" {
				u, ok := errors.AsType[*sandbox.Unavailable](err)
				if !ok || !strings.Contains(u.Reason, c.fails) || !strings.Contains(u.Reason, "octo/"+name) {
					t.Errorf("%v", err)
				}
				r.clean()
				return
			}
			must(t, err)
			if notes := strings.Join(r.state().Checkout.Notes, " "); !strings.Contains(notes, c.note) || (notes == "") != (c.note == "") {
				t.Errorf("%q", notes)
			}
			if got := r.sh("ls -A .git/hooks 2>/dev/null; git status --short 2>/dev/null"); got != "" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Servers that do not answer as a git server does are told of in plain words.
func testHostileServers(t *testing.T, one *rig) {
	f := one.forge
	f.repository("cut", map[string]string{"README.md": strings.Repeat("Hello\n", 10000)})
	f.repository("broken", map[string]string{"README.md": "Hello\n"})
	page := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	to := func(where string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", where)
			w.WriteHeader(http.StatusFound)
		}
	}
	// pack answers with git's own answer, made worse.
	pack := func(worse func([]byte) []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodPost {
				f.backend(w, req)
				return
			}
			rec := httptest.NewRecorder()
			f.backend(rec, req)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			_, _ = w.Write(worse(rec.Body.Bytes()))
		}
	}
	r := one.again(t, session.Created{Repository: "octo/app"})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   string
		says   string
	}{
		"HTML":      {page(200, "text/html", "<!doctype html><title>Sign in</title>"), "STATUS$GIT_CLONE_FAILED", "no git repository"},
		"lines":     {page(200, "text/html", "<!doctype html>\n<title>Sign in</title>\n"), "STATUS$GIT_CLONE_FAILED", "no git repository"},
		"token":     {page(401, "text/plain", "no"), "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "token"},
		"forbidden": {page(403, "text/plain", "Your account is suspended."), "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "Your account is suspended."},
		"missing":   {page(404, "text/plain", "no"), "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "not found on"},
		"down":      {page(503, "text/plain", "no"), "STATUS$GIT_CLONE_FAILED", "try again later"},
		"circles":   {to(f.url + "/octo/circles.git/info/refs?service=git-upload-pack"), "STATUS$GIT_CLONE_FAILED", "too many redirects"},
		"to a file": {to("file:///etc/passwd"), "STATUS$GIT_CLONE_FAILED", ""},
		"cut":       {pack(func(b []byte) []byte { return b[:len(b)*2/3] }), "STATUS$GIT_CLONE_FAILED", ""},
		"broken":    {pack(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("PACK"), []byte("KCAP")) }), "STATUS$GIT_CLONE_FAILED", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f.answer(name, c.answer)
			r.src.URL = f.url + "/octo/" + strings.ReplaceAll(name, " ", "%20") + ".git"
			err := r.prepare()
			u, ok := errors.AsType[*sandbox.Unavailable](err)
			if !ok || u.Code() != c.code || !strings.Contains(u.Reason, c.says) || strings.Contains(u.Reason, "\n") {
				t.Errorf("%v", err)
			}
			r.clean()
		})
	}
}

// Addresses that would make git run or read something are not even tried.
func testHostileAddresses(t *testing.T, one *rig) {
	r := one.again(t, session.Created{Repository: "octo/app"})
	for _, address := range []string{"ext::sh -c touch% /workspace/owned", "--upload-pack=touch /workspace/owned", "-u", "file:///etc", "/etc", "../x", "ssh://git@h/x",
		"git@h:a/b", "https://user:password@h/a/b", "https:///a", "http://h/a b", "http://h/a\nb", "https://h/a?x", "", "HTTPS://h/a#b", "fd::17", "git://h/a"} {
		if checkout.CheckURL(address) == nil {
			t.Errorf("%q is let pass", address)
		}
		r.src.URL = address
		if err := r.prepare(); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if got := r.sh(owned); got != "" {
		t.Errorf("it did harm: %s", got)
	}
	r.clean()
	for _, address := range []string{"https://h/a/b.git", "http://127.0.0.1:3000/a/b.git", "https://h/a"} {
		if err := checkout.CheckURL(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	f.Add("https://h/a/b.git")
	f.Add("ext::sh")
	f.Fuzz(func(t *testing.T, address string) {
		if checkout.CheckURL(address) != nil {
			return
		}
		if lower := strings.ToLower(address); !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") || strings.ContainsAny(address, "\n\x00 ") {
			t.Errorf("%q is let pass", address)
		}
	})
}
