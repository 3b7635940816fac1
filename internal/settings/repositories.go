package settings

import (
	"net/url"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/gitprovider"
)

// maxRepositories is how many repositories a list may name.
const maxRepositories = 1000

// RepositoryName is the one spelling of where a repository is: its host and its
// path there, such as github.com/octo/app. An address of a clone means the same.
// It is false for what names no repository on a host.
func RepositoryName(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(text) > maxURL {
		return "", false
	}
	path := strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	if u.Hostname() == "" || !strings.ContainsAny(u.Host, ".:") && u.Hostname() != "localhost" || strings.ContainsAny(path, " \t\r\n\x00\\") {
		return "", false
	}
	parts := strings.Split(path, "/")
	if len(parts) < 2 || slices.Contains(parts, "") || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return "", false
	}
	return strings.ToLower(u.Host + "/" + path), true
}

// RepositoryAt is the name of a repository that was cloned from an address or, if that is "", that has a name at a
// provider. It is "" if it is not known where the repository is.
func (s *Settings) RepositoryAt(address, provider, repository string) string {
	if address == "" && repository != "" {
		address, _ = gitprovider.CloneURL(provider, s.ProviderTokens[provider].Host, repository)
	}
	if address == "" {
		return ""
	}
	name, _ := RepositoryName(address)
	return name
}

// Trusts is true if the user trusts the repository, whose name is as RepositoryName gives it.
func (s *Settings) Trusts(repository string) bool {
	return repository != "" && slices.Contains(s.TrustedRepositories, repository)
}

// Trust adds a repository to those that the user trusts, or takes it away.
func (s *Settings) Trust(repository string, trusted bool) {
	list := slices.DeleteFunc(slices.Clone(s.TrustedRepositories), func(r string) bool { return r == repository })
	if trusted {
		list = append(list, repository)
	}
	s.TrustedRepositories = list
}

// TrustOnly replaces the repositories that the user trusts. It fails with a *api.ValidationError.
func (s *Settings) TrustOnly(list []string) error {
	m := &merger{}
	m.repositories(api.Some(list), &s.TrustedRepositories, "repositories")
	if len(m.bad) > 0 {
		return &api.ValidationError{Detail: m.bad}
	}
	return nil
}

// For is true if a secret is for a repository: "" is none. A secret that names no
// repositories is for all.
func (c CustomSecret) For(repository string) bool {
	return len(c.Repositories) == 0 || repository != "" && slices.Contains(c.Repositories, repository)
}

// repositories sets a list of repositories: omitted keeps, null clears.
func (m *merger) repositories(in api.Opt[[]string], dst *[]string, path ...any) {
	if !in.Set {
		return
	}
	if len(in.Value) > maxRepositories {
		m.refuse(&problem{"too_long", "Too many repositories: the limit is 1000."}, path...)
		return
	}
	var out []string
	for i, text := range in.Value {
		name, ok := RepositoryName(text)
		if !ok {
			m.refuse(&problem{"value_error", "Must be the host and path of a repository, such as github.com/octo/app."}, append(slices.Clone(path), i)...)
			continue
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	*dst = out
}
