package gitgate

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Kind is what a request is about.
type Kind int

// The kinds.
const (
	Refs    Kind = iota // which commits there are, the beginning of every exchange
	Fetch               // commits from the host
	Push                // commits to the host
	Batch               // where LFS objects are
	Locks               // of LFS
	Object              // of LFS, one of them
	Confirm             // that an LFS object has arrived
)

// Request is what git asks of a site.
type Request struct {
	Site       Site
	Method     string
	Path       string // at the site, with a slash in front
	Query      string
	Repository string // owner/name
	Kind       Kind
	// Service is what Refs is the beginning of, and what the others are: a type
	// of git's own.
	Service string
	// Write is true when the repository may change. A Batch says it in its body.
	Write bool
}

// The services of git.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// URL is where the request goes.
func (r Request) URL() *url.URL {
	return &url.URL{Scheme: r.Site.Scheme, Host: r.Site.Host, Path: r.Path, RawQuery: r.Query}
}

var (
	errShape = errors.New("this address is for git alone: http://" + Name + "/https/HOST/OWNER/NAME.git, and what git asks below it")
	errSpell = errors.New("the address has characters in it that have no place in the address of a repository")
)

// maxPath is longer than any repository's.
const maxPath = 1000

// Parse reads a request for the gate. The path is as it was sent, still escaped.
// There is one spelling for everything: a host that reads another one in its own
// way might be asked for something else than was checked here.
func Parse(method, path, query string) (Request, error) {
	if len(path) > maxPath || len(query) > maxPath {
		return Request{}, errors.New("the address is too long")
	}
	parts := strings.Split(path, "/")
	if len(parts) < 4 || parts[0] != "" {
		return Request{}, errShape
	}
	for i, part := range parts[1:] {
		letters := pathLetters
		if i == 1 {
			letters = hostLetters
		}
		if part == "" || part == "." || part == ".." || part == "-" || strings.Trim(part, letters) != "" {
			return Request{}, errSpell
		}
	}
	r := Request{Method: method, Path: "/" + strings.Join(parts[3:], "/")}
	site, ok := Origin(&url.URL{Scheme: parts[1], Host: parts[2]})
	if r.Site = site; !ok || site.Host != parts[2] {
		return Request{}, errShape
	}
	if !r.git(parts[3:], query) && !r.lfs(parts[3:], query) {
		return Request{}, errShape
	}
	if !repository(r.Repository) {
		return Request{}, errShape
	}
	r.Repository = strings.TrimSuffix(r.Repository, ".git")
	return r, nil
}

const pathLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~+@"

// git recognises git's own protocol.
func (r *Request) git(parts []string, query string) bool {
	last := len(parts) - 1
	switch {
	case r.Method == http.MethodGet && last >= 2 && parts[last-1] == "info" && parts[last] == "refs":
		service, ok := strings.CutPrefix(query, "service=")
		if !ok || service != uploadPack && service != receivePack {
			return false
		}
		r.Kind, r.Service, r.Query, r.Write = Refs, service, query, service == receivePack
		last--
	case r.Method == http.MethodPost && query == "" && parts[last] == uploadPack:
		r.Kind, r.Service = Fetch, uploadPack
	case r.Method == http.MethodPost && query == "" && parts[last] == receivePack:
		r.Kind, r.Service, r.Write = Push, receivePack, true
	default:
		return false
	}
	r.Repository = strings.Join(parts[:last], "/")
	return true
}

// lfs recognises the protocol of LFS. What follows objects/ is where Gitea and
// GitLab let objects be fetched and left.
func (r *Request) lfs(parts []string, query string) bool {
	at, tail := cutLFS(parts)
	if at < 0 {
		return false
	}
	r.Repository = strings.Join(parts[:at], "/")
	get, put, post := r.Method == http.MethodGet, r.Method == http.MethodPut, r.Method == http.MethodPost
	if get && tail == "locks" {
		r.Kind, r.Query = Locks, query
		return lockQuery(query)
	}
	if query != "" {
		return false
	}
	if oid, ok := strings.CutPrefix(tail, "objects/"); ok && oid != "batch" {
		r.Kind, r.Write = Object, put
		return (get || put) && object(oid)
	}
	id, unlock := strings.CutSuffix(tail, "/unlock")
	switch {
	case post && tail == "objects/batch":
		r.Kind = Batch
	case post && (tail == "locks" || tail == "locks/verify"), post && unlock && strings.Count(id, "/") == 1 && strings.HasPrefix(id, "locks/"):
		r.Kind, r.Write = Locks, true
	case post && tail == "verify":
		r.Kind, r.Write = Confirm, true
	default:
		return false
	}
	return true
}

// cutLFS finds where the repository ends and LFS begins, -1 if nowhere.
func cutLFS(parts []string) (at int, tail string) {
	for i := len(parts) - 2; i > 0; i-- {
		if parts[i] == "gitlab-lfs" && parts[i+1] == "objects" {
			return i, strings.Join(parts[i+1:], "/")
		}
		if parts[i] == "info" && parts[i+1] == "lfs" {
			return i, strings.Join(parts[i+2:], "/")
		}
	}
	return -1, ""
}

// object is the name of an LFS object, and perhaps its size.
func object(text string) bool {
	oid, size, sized := strings.Cut(text, "/")
	return len(oid) == 64 && strings.Trim(oid, "0123456789abcdef") == "" &&
		(!sized || size != "" && len(size) < 20 && strings.Trim(size, "0123456789") == "")
}

// lockQuery is what locks can be asked for by.
func lockQuery(query string) bool {
	values, err := url.ParseQuery(query)
	for name, given := range values {
		if !slices.Contains([]string{"path", "id", "cursor", "limit", "refspec"}, name) || len(given) != 1 {
			return false
		}
	}
	return err == nil
}

// repository reports whether name is a repository: hosts serve their API beside the
// repositories, under reserved names.
func repository(name string) bool {
	parts := strings.Split(name, "/")
	switch strings.ToLower(parts[0]) {
	case "api", "rest", "plugins", "v2", "oauth", "login", "user", "admin":
		return false
	}
	for _, part := range parts[:len(parts)-1] {
		if strings.HasSuffix(strings.ToLower(part), ".git") {
			return false
		}
	}
	return len(parts) >= 2 && strings.TrimSuffix(parts[len(parts)-1], ".git") != ""
}
