package gitprovider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Token is a stored token and its host.
type Token struct{ Token, Host string }

// Verify checks over the git protocol that a repository can be read, and that it has the
// branch, if one is named. It tries the named provider first, then all with a stored
// token, then the public ones, and returns the first that has the repository. A token is
// sent only to the host it was stored for.
func Verify(ctx context.Context, client *http.Client, tokens map[string]Token, provider, repository, branch string) (string, error) {
	if !ValidRepository(repository) {
		return "", &UnreachableError{Repository: repository, Why: []string{"the name must be owner/name"}}
	}
	var why []string
	for _, these := range candidates(tokens, provider) {
		missing, at, errs := First(ctx, len(these), func(ctx context.Context, i int) (*BranchError, error) {
			return has(ctx, client, these[i], tokens[these[i]], repository, branch)
		})
		switch {
		case at >= 0 && missing != nil:
			return "", missing
		case at >= 0:
			return these[at], nil
		}
		for i, err := range errs {
			why = append(why, these[i]+": "+err.Error())
		}
	}
	return "", &UnreachableError{Repository: repository, Why: why}
}

// has tries to read a repository with the token, and then without it, because it may be
// public. A missing branch is a BranchError.
func has(ctx context.Context, client *http.Client, provider string, t Token, repository, branch string) (*BranchError, error) {
	err := reach(ctx, client, provider, t, repository, branch)
	if t.Token != "" && errors.Is(err, errNoAccess) {
		again := reach(ctx, client, provider, Token{Host: t.Host}, repository, branch)
		if _, branchless := errors.AsType[*BranchError](again); again == nil || branchless {
			err = again
		}
	}
	if missing, ok := errors.AsType[*BranchError](err); ok {
		return missing, nil
	}
	return nil, err
}

// UnreachableError says which repository could not be read, and why for each provider.
type UnreachableError struct {
	Repository string
	Why        []string
}

func (e *UnreachableError) Error() string {
	return "Unable to access repo " + e.Repository + " (" + strings.Join(e.Why, "; ") + ")"
}

// BranchError means that the repository exists, but not the branch.
type BranchError struct{ Repository, Branch string }

func (e *BranchError) Error() string {
	return "The repository " + e.Repository + " has no branch " + e.Branch + "."
}

// candidates returns the providers to try: those of a group in parallel, the next group
// only if none of them has the repository, because repository names can be confidential.
func candidates(tokens map[string]Token, provider string) (groups [][]string) {
	var stored, public []string
	for p := range tokens {
		if p != provider {
			stored = append(stored, p)
		}
	}
	slices.Sort(stored)
	if provider != "" {
		return [][]string{{provider}, stored}
	}
	for _, p := range PublicNames() {
		if !slices.Contains(stored, p) {
			public = append(public, p)
		}
	}
	return [][]string{stored, public}
}

// reach tries each way to authenticate at the provider.
func reach(ctx context.Context, client *http.Client, provider string, t Token, repository, branch string) error {
	base, err := baseURL(provider, t.Host)
	if err != nil {
		return err
	}
	shown := []string{""}
	if t.Token != "" {
		shown = Credentials(provider, t.Token, foreign(provider, base))
	}
	for _, credentials := range shown {
		if err = read(ctx, client, cloneURL(provider, base, repository), credentials, repository, branch); !errors.Is(err, errNoAccess) {
			return err
		}
	}
	if t.Token == "" {
		return errors.New("no public repository with this name, and no token is stored")
	}
	return err
}

var errNoAccess = errors.New("the stored token has no access to the repository")

func read(ctx context.Context, client *http.Client, at *url.URL, credentials, repository, branch string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("info", "refs").String()+"?service=git-upload-pack", nil)
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	if credentials != "" {
		req.Header.Set("Authorization", credentials)
	}
	res, err := client.Do(req)
	var refused interface { // by the outbound policy, whose message is for users
		error
		Forbidden() bool
	}
	if errors.As(err, &refused) && refused.Forbidden() {
		return fmt.Errorf("the address is not allowed: the server %w", refused)
	}
	if err != nil {
		return fmt.Errorf("%s does not respond", at.Host)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusOK && strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-git-upload-pack-advertisement"):
		if branch == "" {
			return nil
		}
		has, err := hasBranch(res.Body, branch)
		switch {
		case err != nil:
			return fmt.Errorf("%s returned an invalid list of branches", at.Host)
		case !has:
			return &BranchError{Repository: repository, Branch: branch}
		}
		return nil
	case res.StatusCode == http.StatusOK:
		return fmt.Errorf("there is no git service on %s at this URL", at.Host)
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusNotFound:
		return errNoAccess
	}
	return fmt.Errorf("%s responded with status %d", at.Host, res.StatusCode)
}

// CloneURL returns the clone URL of a repository without credentials. host is the stored
// one, or "" for the public host.
func CloneURL(provider, host, repository string) (string, error) {
	if !ValidRepository(repository) {
		return "", errors.New("the repository name must be owner/name")
	}
	base, err := baseURL(provider, host)
	if err != nil {
		return "", err
	}
	return cloneURL(provider, base, repository).String(), nil
}

func cloneURL(provider string, base *url.URL, repository string) *url.URL {
	if at := Describe(provider).ClonePath; at != "" && foreign(provider, base) {
		base = base.JoinPath(at)
	}
	return base.JoinPath(strings.TrimSuffix(repository, ".git") + ".git")
}

// foreign reports whether a host is not the provider's public one.
func foreign(provider string, at *url.URL) bool {
	return !strings.EqualFold(at.Host, Describe(provider).Host)
}

// baseURL returns the base URL of a provider's repositories: at the public host or the stored one, which may have a
// scheme.
func baseURL(provider, host string) (*url.URL, error) {
	if host == "" {
		host = Describe(provider).Host
	}
	if host == "" {
		return nil, errors.New("no host is stored; store the token with a host")
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("the stored host is not valid")
	}
	return u, nil
}
