package httpapi

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/settings"
)

// place is a git provider in memory. Nil functions are what it does not have.
type place struct {
	gitprovider.Provider // panics where a test does not expect to be asked
	user                 func(ctx context.Context) (gitprovider.User, error)
	repositories         func(q gitprovider.RepositoryQuery) (gitprovider.Repositories, error)
	search               func(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error)
	branches             func(repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error)
	installations        func() ([]string, error)
	tasks                func(ctx context.Context) ([]gitprovider.Task, error)
	issue                func(repository string, number int) (gitprovider.Issue, error)
	files                map[string]string // by repository, colon and path
	fails                error             // of requests for files
}

func (h *place) User(ctx context.Context) (gitprovider.User, error) { return h.user(ctx) }

func (h *place) Repositories(_ context.Context, q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
	return h.repositories(q)
}

func (h *place) Search(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
	return h.search(ctx, q)
}

func (h *place) Branches(_ context.Context, repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
	return h.branches(repository, q)
}

func (h *place) Installations(context.Context) ([]string, error) { return h.installations() }

func (h *place) Tasks(ctx context.Context) ([]gitprovider.Task, error) { return h.tasks(ctx) }

func (h *place) Issue(_ context.Context, repository string, number int) (gitprovider.Issue, error) {
	return h.issue(repository, number)
}

// street is the hosts that a server can reach, by provider, and who was opened with what.
type street struct {
	mu     sync.Mutex
	hosts  map[string]*place
	opened []string // provider, host and token
}

func (s *street) open(_ context.Context, provider string, t settings.ProviderToken) (gitprovider.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, provider+" "+t.Host+" "+t.Token.Reveal())
	h := s.hosts[provider]
	if h == nil {
		return nil, gitprovider.Failure(provider, t.Host, gitprovider.Refused, "No host is stored for it.")
	}
	return h, nil
}

// take returns who was opened since it was last called.
func (s *street) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.opened
	s.opened = nil
	return out
}

func newStreet(hosts map[string]*place) (*street, tune) {
	s := &street{hosts: hosts}
	return s, tune{config: func(c *Config) { c.Git.Forge = s.open }}
}

// knows is a host that accepts one token of a user.
func knows(id string) *place {
	return &place{user: func(context.Context) (gitprovider.User, error) {
		return gitprovider.User{ID: id, Login: "login-" + id}, nil
	}}
}

// answers is a host whose user call fails.
func answers(err error) *place {
	return &place{user: func(context.Context) (gitprovider.User, error) { return gitprovider.User{}, err }}
}

func failing(provider string, reason gitprovider.Reason) *gitprovider.Error {
	return gitprovider.Failure(provider, provider+".example", reason, "")
}

// tokens stores tokens without verifying them.
func (r *rig) tokens(user string, providers ...string) {
	r.t.Helper()
	err := r.api.Conversations.Settings.Change(r.t.Context(), user, func(s *settings.Settings) error {
		s.ProviderTokens = map[string]settings.ProviderToken{}
		for _, p := range providers {
			s.ProviderTokens[p] = token(canary+"-"+p, "")
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// stored is what is stored for ada.
func (r *rig) storedTokens(t *testing.T) map[string]settings.ProviderToken {
	t.Helper()
	s, err := r.api.Conversations.Settings.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	return s.ProviderTokens
}

func (h *place) Repository(_ context.Context, name string) (gitprovider.Repository, error) {
	for at := range h.files {
		if repository, _, _ := strings.Cut(at, ":"); repository == name {
			return gitprovider.Repository{Name: name}, nil
		}
	}
	return gitprovider.Repository{}, failing("github", gitprovider.NotFound)
}

func (h *place) Folder(_ context.Context, repository, _, folder string) ([]gitprovider.File, error) {
	if h.fails != nil {
		return nil, h.fails
	}
	var out []gitprovider.File
	for at := range h.files {
		name, file, _ := strings.Cut(at, ":")
		rest, below := strings.CutPrefix(file, folder+"/")
		if folder == "" {
			rest, below = file, file != ""
		}
		if name != repository || !below {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		f := gitprovider.File{Name: first, Path: path.Join(folder, first), Folder: deeper}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if out == nil {
		return nil, failing("github", gitprovider.NotFound)
	}
	slices.SortFunc(out, func(a, b gitprovider.File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (h *place) File(_ context.Context, repository, _, file string) ([]byte, error) {
	if h.fails != nil {
		return nil, h.fails
	}
	text, ok := h.files[repository+":"+file]
	if !ok {
		return nil, failing("github", gitprovider.NotFound)
	}
	return []byte(text), nil
}
