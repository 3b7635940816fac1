package gitprovider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func pkt(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		if l == "" {
			b.WriteString("0000")
			continue
		}
		fmt.Fprintf(&b, "%04x%s", len(l)+4, l)
	}
	return b.String()
}

const service = "# service=git-upload-pack\n"

var (
	commit = strings.Repeat("a", 40)
	two    = pkt(service, "", commit+" HEAD\x00side-band symref=HEAD:refs/heads/main\n", commit+" refs/heads/feature/x\n", commit+" refs/heads/main\n", commit+" refs/tags/v1\n", "")
)

func TestHasBranch(t *testing.T) {
	for name, c := range map[string]struct {
		text, branch string
		has, fails   bool
	}{
		"main":                 {two, "main", true, false},
		"with a slash":         {two, "feature/x", true, false},
		"first ref":            {pkt(service, "", commit+" refs/heads/only\x00caps\n", ""), "only", true, false},
		"missing":              {two, "nope", false, false},
		"a tag is no branch":   {two, "v1", false, false},
		"only the beginning":   {two, "mai", false, false},
		"empty repository":     {pkt(service, "", strings.Repeat("0", 40)+" capabilities^{}\x00caps\n", ""), "main", false, false},
		"nothing but flushes":  {"00000000", "main", false, false},
		"ends without a flush": {pkt(service, "", commit+" refs/heads/main\n"), "nope", false, false},
		"cut within a line":    {two[:len(two)-20], "nope", false, true},
		"nothing":              {"", "main", false, true},
		"HTML":                 {"<!doctype html><p>Sign in", "main", false, true},
		"impossible length":    {"0003", "main", false, true},
	} {
		has, err := hasBranch(strings.NewReader(c.text), c.branch)
		if has != c.has || (err != nil) != c.fails {
			t.Errorf("%s: %t %v", name, has, err)
		}
	}
}

// A list that does not end is not read to its end.
func TestEndlessRefs(t *testing.T) {
	line := pkt(commit + " refs/heads/" + strings.Repeat("x", 200) + "\n")
	has, err := hasBranch(io.MultiReader(strings.NewReader(pkt(service, "")), &endless{text: line}), "main")
	if !has || err != nil {
		t.Errorf("%t %v", has, err)
	}
}

type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func FuzzHasBranch(f *testing.F) {
	f.Add(two, "main")
	f.Add("0004", "x")
	f.Fuzz(func(t *testing.T, text, branch string) {
		if has, err := hasBranch(strings.NewReader(text), branch); has && (err != nil || !strings.Contains(text, branch)) {
			t.Errorf("%q in %q: %v", branch, text, err)
		}
	})
}

// The branch is looked for where the repository is found, with and without a token.
func TestVerifyBranch(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/octo/app.git/") || r.Header.Get("Authorization") == Basic("x-access-token:expired") {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, two)
	}))
	defer s.Close()
	for _, token := range []string{"", "good", "expired"} {
		tokens := map[string]Token{"gitea": {token, s.URL}}
		for branch, good := range map[string]bool{"": true, "main": true, "feature/x": true, "nope": false} {
			got, err := Verify(t.Context(), http.DefaultClient, tokens, "gitea", "octo/app", branch)
			if good && (got != "gitea" || err != nil) {
				t.Errorf("%q %q: %q %v", token, branch, got, err)
			}
			if missing, ok := errors.AsType[*BranchError](err); !good && (!ok || missing.Error() != "The repository octo/app has no branch nope.") {
				t.Errorf("%q %q: %v", token, branch, err)
			}
		}
	}
}

func TestCloneURL(t *testing.T) {
	for _, c := range []struct{ provider, host, repository, want string }{
		{"github", "", "octo/app", "https://github.com/octo/app.git"}, {"gitlab", "git.example.org", "a/b/c", "https://git.example.org/a/b/c.git"},
		{"gitea", "http://127.0.0.1:3000", "a/b.git", "http://127.0.0.1:3000/a/b.git"}, {"gitea", "https://h/git/", "a/b", "https://h/git/a/b.git"},
		{"github", "", "--upload-pack=x/y", ""}, {"github", "ext::sh", "a/b", ""}, {"enterprise_sso", "", "a/b", ""}, {"github", "file:///", "a/b", ""},
	} {
		got, err := CloneURL(c.provider, c.host, c.repository)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
}
