// Package bitbucket speaks to both products of the name, which share no API:
// Bitbucket Cloud at bitbucket.org, and Bitbucket Data Center at every other
// host.
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
	mostPages    = 10 // of a list that is read to its end
	mostRequests = 50 // pull requests that are looked at for tasks
	mostIssues   = 50
)

// New makes the adapter for the product that runs at the host.
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

// authorize sends what was stored as user:password as that, and everything else
// as a bearer token. Cloud's app passwords and API tokens come with a user.
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

// split takes a name apart; Bitbucket's have two parts, always.
func split(c *call.Caller, repository string) (owner, slug string, err error) {
	owner, slug, ok := strings.Cut(repository, "/")
	if !ok || owner == "" || slug == "" || strings.Contains(slug, "/") {
		return "", "", c.Fail(gitprovider.NotFound, "")
	}
	return owner, slug, nil
}

// hidden reports whether an error says no more than that one thing among many
// is not there or not to be seen by the token.
func hidden(err error) bool {
	reason := gitprovider.ReasonOf(err)
	return reason == gitprovider.NotFound || reason == gitprovider.Scope
}

// ifSeen is the error, unless it says only that something is hidden.
func ifSeen(err error) error {
	if hidden(err) {
		return nil
	}
	return err
}

// together calls do for each number below n, a few at a time, and waits for
// all. The first error ends what is still under way and is the one returned.
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

// failedFirst orders lines of the form "name: state" for a reader in a hurry.
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

// where names the line that a comment is about, or the file if it is about no line of it.
func where(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return file + ":" + strconv.Itoa(line) + ": "
}

// pageNumber is one that can be asked for. The last page that anybody turns to
// comes long before the bound, which keeps sizes within an int.
func pageNumber(page int) int { return min(max(page, 1), 100_000) }

// window cuts a page out of all that was read up to its end.
func window[T any](items []T, page, size int) []T {
	from := min((page-1)*size, len(items))
	return items[from:min(from+size, len(items))]
}
