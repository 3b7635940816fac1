// Package bitbucket is the adapter for both Bitbucket products, which have different
// APIs: Bitbucket Cloud at bitbucket.org, and Bitbucket Data Center at any other host.
package bitbucket

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

const (
	mostPages    = 10 // of a list that is read in full
	mostRequests = 50 // pull requests that are checked for tasks
	mostIssues   = 50
)

// New returns the adapter for the product at the host.
func New(o call.Options) gitprovider.Provider {
	if isCloud(o.Host) {
		o.Host = ""
		return newCloud(o, func(*url.URL) *url.URL {
			return &url.URL{Scheme: "https", Host: "api." + cloudHost, Path: "/2.0"}
		})
	}
	return newDataCenter(o)
}

func isCloud(host string) bool {
	if _, after, scheme := strings.Cut(host, "://"); scheme {
		host = after
	}
	switch strings.TrimRight(strings.ToLower(host), "/") {
	case "", cloudHost, "www." + cloudHost, "api." + cloudHost:
		return true
	}
	return false
}

// authorize sends a token of the form user:password as basic authentication, and any
// other as a bearer token. Cloud's app passwords and API tokens have a user.
func authorize(token string) func(http.Header) {
	return func(h http.Header) {
		switch {
		case token == "":
		case strings.Contains(token, ":"):
			h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(token)))
		default:
			h.Set("Authorization", "Bearer "+token)
		}
	}
}

// split splits a name, which always has two parts.
func split(c *call.Caller, repository string) (owner, slug string, err error) {
	owner, slug, ok := strings.Cut(repository, "/")
	if !ok || owner == "" || slug == "" || strings.Contains(slug, "/") {
		return "", "", c.Fail(gitprovider.NotFound, "")
	}
	return owner, slug, nil
}

// hidden reports whether an error only means that one item does not exist or is not
// visible to the token.
func hidden(err error) bool {
	reason := gitprovider.ReasonOf(err)
	return reason == gitprovider.NotFound || reason == gitprovider.Scope
}

// ifSeen returns err, or nil if it only means that something is hidden.
func ifSeen(err error) error {
	if hidden(err) {
		return nil
	}
	return err
}

// together calls do for each number below n, a few at a time, and waits for all. The
// first error cancels the others and is returned.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if within.Err() != nil {
				return
			}
			if err := do(within, i); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(within)
}

// failedFirst sorts lines of the form "name: state", failures first.
func failedFirst(checks []string) {
	slices.SortStableFunc(checks, func(a, b string) int {
		failed := func(line string) int {
			if strings.HasSuffix(line, ": FAILED") {
				return 0
			}
			return 1
		}
		return cmp.Compare(failed(a), failed(b))
	})
}

// where returns the line or the file that a comment is about.
func where(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return file + ":" + strconv.Itoa(line) + ": "
}

// pageNumber limits a page number, so that sizes fit into an int.
func pageNumber(page int) int { return min(max(page, 1), 100_000) }

// window returns a page of items that were read up to its end.
func window[T any](items []T, page, size int) []T {
	from := min((page-1)*size, len(items))
	return items[from:min(from+size, len(items))]
}
