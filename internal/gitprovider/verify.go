package gitprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Token is what a user stored for a provider.
type Token struct{ Token, Host string }

// hosts are where a provider lives unless the user stored another host.
var hosts = map[string]string{
	"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "gitea": "gitea.com", "forgejo": "codeberg.org",
}

// Verify asks whether a repository can be read, over git's own protocol, which
// every provider speaks. The provider named comes first, then every one with a
// stored token, then the public ones; the first that has the repository is
// returned. A token is sent to the host it was stored for and to no other.
func Verify(ctx context.Context, client *http.Client, tokens map[string]Token, provider, repository string) (string, error) {
	if !ValidRepository(repository) {
		return "", &UnreachableError{Repository: repository, Why: []string{"the name is not owner/name"}}
	}
	var why []string
	for _, p := range candidates(tokens, provider) {
		err := reach(ctx, client, p, tokens[p], repository)
		if err != nil && tokens[p].Token != "" && reach(ctx, client, p, Token{Host: tokens[p].Host}, repository) == nil {
			err = nil // the token is no good, but the repository is public
		}
		if err == nil {
			return p, nil
		}
		why = append(why, p+": "+err.Error())
	}
	return "", &UnreachableError{Repository: repository, Why: why}
}

// UnreachableError says which repository could not be read, and what each provider answered.
type UnreachableError struct {
	Repository string
	Why        []string
}

func (e *UnreachableError) Error() string {
	return "Unable to access repo " + e.Repository + " (" + strings.Join(e.Why, "; ") + ")"
}

func candidates(tokens map[string]Token, provider string) []string {
	var out []string
	for p := range tokens {
		if p != provider {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	if provider != "" {
		return append([]string{provider}, out...)
	}
	for _, p := range []string{"github", "gitlab", "bitbucket"} {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func reach(ctx context.Context, client *http.Client, provider string, t Token, repository string) error {
	base, err := baseURL(provider, t.Host)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(repository+".git", "info", "refs").String()+"?service=git-upload-pack", nil)
	if err != nil {
		return errors.New("the address cannot be used")
	}
	if t.Token != "" {
		user, password, pair := strings.Cut(t.Token, ":")
		if !pair { // Bitbucket's app passwords come as user:password
			user, password = "oauth2", t.Token
		}
		req.SetBasicAuth(user, password)
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer", base.Host)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 1<<16)
	switch {
	case res.StatusCode == http.StatusOK && strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-git-upload-pack-advertisement"):
		return nil
	case res.StatusCode == http.StatusOK:
		return fmt.Errorf("%s does not speak git at this address", base.Host)
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusNotFound:
		if t.Token == "" {
			return errors.New("there is no such public repository, and no token is stored")
		}
		return errors.New("the stored token gives no access to it")
	}
	return fmt.Errorf("%s answers with status %d", base.Host, res.StatusCode)
}

// baseURL is where a provider's repositories begin: its own host, or the stored one, with a scheme if one was given.
func baseURL(provider, host string) (*url.URL, error) {
	if host == "" {
		host = hosts[provider]
	}
	if host == "" {
		return nil, errors.New("no host is stored for it; store its token with a host")
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("the stored host is not an address")
	}
	return u, nil
}
